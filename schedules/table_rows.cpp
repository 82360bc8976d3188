#include "schedules/table_rows.h"

namespace scalide {

namespace {

[[noreturn]] void refuse_at(const std::string &file, const YAML::Mark &mark, const std::string &words) {
    throw UserError({mark.is_null() ? Location{file} : Location{file, mark.line + 1}, "row", words, "", ""});
}

} // namespace

void read_rows(const std::string &text, const std::string &file, const std::function<void(const YAML::Node &row)> &read) {
    YAML::Mark place = YAML::Mark::null_mark();
    try {
        const YAML::Node rows = YAML::Load(text);
        if (!rows.IsSequence() || rows.size() == 0) refuse_at(file, rows.Mark(), "must be one of a list, got no list");
        for (const YAML::Node &row : rows) {
            place = row.Mark();
            if (!row.IsMap()) refuse_at(file, place, "must be a map");
            read(row);
        }
    } catch (const YAML::Exception &error) {
        refuse_at(file, error.mark.is_null() ? place : error.mark, error.msg);
    }
}

YAML::Node needed(const YAML::Node &map, const std::string &key) {
    if (!map.IsMap() || !map[key]) refuse(map, "must have the key " + key);
    return map[key];
}

void refuse(const YAML::Node &node, const std::string &requirement) {
    throw YAML::RepresentationException(node.IsDefined() ? node.Mark() : YAML::Mark::null_mark(), requirement);
}

} // namespace scalide

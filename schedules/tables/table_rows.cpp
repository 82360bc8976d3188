#include "schedules/tables/table_rows.h"
#include "expr/error.h"

namespace scalide {

std::vector<YamlValue> read_rows(const std::string &text, const std::string &file) {
    const std::vector<YamlValue> documents = parse_yaml(text, file);
    if (documents.empty()) throw UserError({{file}, "rows", "the file must contain a list", "an empty file", ""});
    if (documents.size() > 1) documents[1].called("rows").fail("the file must contain one YAML document", "a second one");
    std::vector<YamlValue> rows;
    for (const YamlValue &row : documents[0].called("rows").elements()) rows.push_back(row.called("row"));
    if (rows.empty()) documents[0].called("rows").fail("must be a list of at least one entry", "an empty list");
    return rows;
}

int64_t integer_in(const YamlValue &value, int64_t least, int64_t most) {
    const int64_t number = value.integer();
    if (number < least || number > most)
        value.fail("must be in [" + std::to_string(least) + ", " + std::to_string(most) + "]", std::to_string(number));
    return number;
}

} // namespace scalide

#include "tool/tables.h"
#include "emit/plan_text.h"
#include <fmt/core.h>
#include <nlohmann/json.hpp>

namespace scalide {

std::string in_columns(const std::vector<std::vector<std::string>> &rows) {
    std::vector<size_t> widths(rows[0].size());
    for (const std::vector<std::string> &row : rows)
        for (size_t i = 0; i < row.size(); i++) widths[i] = std::max(widths[i], row[i].size());
    std::string text;
    for (const std::vector<std::string> &row : rows) {
        for (size_t i = 0; i + 1 < row.size(); i++) text += fmt::format("{:<{}}  ", row[i], widths[i]);
        text += row.back() + "\n";
    }
    return text;
}

std::string short_place(const Location &location, const std::string &none) { return location.line == 0 ? none : short_location(location); }

nlohmann::ordered_json place_json(const Location &location) {
    if (location.line == 0) return nullptr;
    return {{"file", location.file}, {"line", location.line}};
}

} // namespace scalide

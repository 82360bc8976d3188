#include "tool/tables.h"
#include "emit/plan_text.h"
#include <algorithm>
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

void drop_unused_columns(std::vector<std::vector<std::string>> &rows) {
    const auto drop = [&](const std::string &heading, const auto &is_used) {
        const auto column = std::ranges::find(rows[0], heading) - rows[0].begin();
        if (static_cast<size_t>(column) == rows[0].size()) return;
        const auto uses = [&](const std::vector<std::string> &row) { return is_used(row[static_cast<size_t>(column)]); };
        if (std::any_of(rows.begin() + 1, rows.end(), uses)) return;
        for (std::vector<std::string> &row : rows) row.erase(row.begin() + column);
    };
    drop("scope", [](const std::string &scope) { return scope != "-"; });
    drop("direction", [](const std::string &direction) { return direction == to_string(Direction::backward); });
}

std::string scope_or_dash(const std::string &scope) { return scope.empty() ? "-" : scope; }

std::string short_place(const Location &location, const std::string &none) { return location.line == 0 ? none : short_location(location); }

nlohmann::ordered_json direction_json(Direction direction) {
    if (direction == Direction::none) return nullptr;
    return to_string(direction);
}

nlohmann::ordered_json place_json(const Location &location) {
    if (location.line == 0) return nullptr;
    return {{"file", location.file}, {"line", location.line}};
}

} // namespace scalide

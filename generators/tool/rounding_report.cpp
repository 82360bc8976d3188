#include "ir/words.h"
#include "tool/rounding_check.h"
#include "tool/tables.h"
#include <algorithm>
#include <fmt/core.h>
#include <nlohmann/json.hpp>

namespace scalide {

namespace {

using Json = nlohmann::ordered_json;
using Row = std::vector<std::string>;

} // namespace

std::string to_text(const RoundingCheck &check) {
    std::string text;
    const bool has_loops = std::ranges::any_of(check.roundings, [](const RoundingCount &row) { return row.steps > 0; });
    std::vector<Row> rows{{"rounded", "format", "elements", "to zero", "saturated", "subnormal", "direction", "scope", "source"}};
    if (has_loops) rows[0].insert(rows[0].end(), {"steps", "first with zero or saturated"});
    for (const RoundingCount &row : check.roundings) {
        rows.push_back({name_to_string(row.tensor), std::string(to_string(row.format)), std::to_string(row.elements),
                        std::to_string(row.zeros), std::to_string(row.saturated), std::to_string(row.subnormals),
                        std::string(to_string(row.direction)), scope_or_dash(row.scope), short_place(row.source, "-")});
        if (!has_loops) continue;
        rows.back().push_back(row.steps > 0 ? std::to_string(row.steps) : "-");
        rows.back().push_back(row.first_step >= 0 ? std::to_string(row.first_step) : "-");
    }
    drop_unused_columns(rows);
    text += check.roundings.empty() ? "nothing is rounded to 8 or 16 bits\n" : in_columns(rows);
    if (!check.states.empty()) {
        rows = {{"state", "format", "elements", "unmoved", "zero updates", "direction", "scope", "source"}};
        for (const StateCount &row : check.states)
            rows.push_back({name_to_string(row.tensor), std::string(to_string(row.format)), std::to_string(row.elements),
                            std::to_string(row.unmoved), std::to_string(row.zero_updates), std::string(to_string(row.direction)),
                            scope_or_dash(row.scope), short_place(row.source, "-")});
        drop_unused_columns(rows);
        text += "\n" + in_columns(rows);
    }
    if (!check.uncompared.empty()) text += "\nstate from a loop or branch, not compared:";
    for (const std::string &name : check.uncompared) text += " " + name_to_string(name);
    if (!check.uncompared.empty()) text += "\n";
    if (!check.misfits.empty()) {
        rows = {{"scale of", "scale", "amax", "problem"}};
        for (const ScaleMisfit &row : check.misfits)
            rows.push_back({name_to_string(row.tensor), fmt::format("{:.4g}", row.scale), fmt::format("{:.4g}", row.amax), row.problem});
        text += "\n" + in_columns(rows);
    }
    return text;
}

std::string to_json(const RoundingCheck &check) {
    Json roundings = Json::array(), states = Json::array(), misfits = Json::array();
    for (const RoundingCount &row : check.roundings)
        roundings.push_back({{"tensor", row.tensor},
                             {"format", to_string(row.format)},
                             {"elements", row.elements},
                             {"zeros", row.zeros},
                             {"saturated", row.saturated},
                             {"subnormals", row.subnormals},
                             {"direction", direction_json(row.direction)},
                             {"scope", row.scope},
                             {"source", place_json(row.source)},
                             {"steps", row.steps},
                             {"first_step", row.first_step}});
    for (const StateCount &row : check.states)
        states.push_back({{"tensor", row.tensor},
                          {"format", to_string(row.format)},
                          {"elements", row.elements},
                          {"unmoved", row.unmoved},
                          {"zero_updates", row.zero_updates},
                          {"direction", direction_json(row.direction)},
                          {"scope", row.scope},
                          {"source", place_json(row.source)}});
    for (const ScaleMisfit &row : check.misfits)
        misfits.push_back({{"tensor", row.tensor}, {"scale", row.scale}, {"amax", row.amax}, {"problem", row.problem}});
    return Json{{"roundings", roundings}, {"states", states}, {"misfits", misfits}, {"uncompared", check.uncompared}}.dump(
               2, ' ', false, Json::error_handler_t::replace) +
           "\n";
}

} // namespace scalide

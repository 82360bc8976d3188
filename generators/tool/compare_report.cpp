#include "ir/words.h"
#include "tool/compare_tensors.h"
#include "tool/tables.h"
#include <cmath>
#include <fmt/core.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

namespace scalide {

namespace {

using CompareJson = nlohmann::ordered_json;

/// The mark of the first row beyond its limit.
constexpr const char *mark = ">";

std::string short_number(double number) { return fmt::format("{:.3g}", number); }

std::string index_text(const std::vector<int64_t> &index) { return fmt::format("[{}]", fmt::join(index, ", ")); }

std::string rule_text(const ComparedTensor &row) { return row.rule.line == 0 && !row.why.empty() ? row.why : short_place(row.rule, "-"); }

/// Returns the name of a tensor. The new value of an argument has the name of the argument.
std::string title_of(const SourceTensor &tensor) { return name_to_string(tensor.shown()) + (tensor.is_update ? " (new)" : ""); }

std::vector<std::string> cells_of(const ComparedTensor &row, const SourceTensor &tensor, bool is_first) {
    const ArrayDifference &found = row.difference;
    const std::string element = found.is_equal ? "-" : fmt::format("{} at {}", short_number(found.largest), index_text(row.index));
    return {is_first ? mark : "",
            title_of(tensor) + (row.is_copy ? " (copy)" : ""),
            std::string(to_string(row.before)),
            std::string(to_string(row.after)),
            short_number(found.relative),
            short_number(row.inputs),
            short_number(row.limit),
            found.relative == 0 ? "-" : fmt::format("{:.1f}", found.sqnr()),
            element,
            short_number(found.amax_before),
            short_number(found.amax_after),
            rule_text(row),
            row.scope.empty() ? "-" : row.scope,
            short_place(row.source, "-")};
}

/// A JSON number. JSON has no infinity and no NaN, which become text.
CompareJson number_json(double number) { return std::isfinite(number) ? CompareJson(number) : CompareJson(fmt::format("{}", number)); }

CompareJson row_json(const ComparedTensor &row, const SourceTensor &tensor) {
    const ArrayDifference &found = row.difference;
    return {{"tensor", tensor.shown()},
            {"value", tensor.names[0]},
            {"operator", tensor.op.empty() ? CompareJson(nullptr) : CompareJson(tensor.op)},
            {"direction", tensor.role == Role::cotangent ? "backward" : "forward"},
            {"copy", row.is_copy},
            {"update", tensor.is_update},
            {"formats", {to_string(row.before), to_string(row.after)}},
            {"error", number_json(found.relative)},
            {"error_of_inputs", number_json(row.inputs)},
            {"error_of_rounding", number_json(row.rounding)},
            {"limit", row.limit},
            {"sqnr", found.relative == 0 ? CompareJson(nullptr) : number_json(found.sqnr())},
            {"largest_difference", number_json(found.largest)},
            {"index", row.index},
            {"elements_there", {number_json(found.before), number_json(found.after)}},
            {"amax", {number_json(found.amax_before), number_json(found.amax_after)}},
            {"shape", tensor.shape},
            {"elements", row.elements},
            {"zeros", found.zeros},
            {"saturated", row.saturated},
            {"non_finite", found.non_finite},
            {"policy", place_json(row.rule)},
            {"because_of", row.why},
            {"scope", row.scope},
            {"source", place_json(row.source)}};
}

/// Describes a row as the subject of a sentence: "v14 (dot_general in block0/scores, model.py:21:14)".
std::string described(const Comparison &comparison, const ComparedTensor &row) {
    const SourceTensor &tensor = comparison.tensors[row.tensor];
    std::vector<std::string> facts;
    facts.push_back((tensor.op.empty() ? "an argument" : tensor.op) + (row.scope.empty() ? "" : " in " + row.scope));
    if (row.source.line != 0) facts.push_back(short_place(row.source, ""));
    const std::string copy = row.is_copy ? fmt::format("the copy of {} in {}", title_of(tensor), to_string(row.after)) : title_of(tensor);
    return fmt::format("{} ({})", copy, fmt::join(facts, ", "));
}

/// Describes what a rounding does to elements: "3 of 64 elements saturate".
std::string losses_of(const ComparedTensor &row) {
    std::vector<std::string> losses;
    const auto add = [&](size_t count, const char *what) {
        if (count > 0) losses.push_back(fmt::format("{} of {} elements {}", count, row.elements, what));
    };
    add(row.saturated, "saturate");
    add(row.difference.zeros, "become 0");
    add(row.difference.non_finite, "differ in an infinity or a NaN");
    return losses.empty() ? "" : fmt::format(": {}", fmt::join(losses, ", "));
}

std::string by_rule(const ComparedTensor &row) { return rule_text(row) == "-" ? "" : ", by " + rule_text(row); }

/// Says whether the error is made in the row or comes from its inputs.
std::string reason_of(const Comparison &comparison, const ComparedTensor &row) {
    const std::string inputs = row.worst_input < 0
                                   ? "Its inputs are equal under both policies"
                                   : fmt::format("The largest error of its inputs is {}, of {}", short_number(row.inputs),
                                                 described(comparison, comparison.rows[static_cast<size_t>(row.worst_input)]));
    const bool is_made_here = row.inputs * 2 < row.difference.relative || row.worst_input < 0;
    if (!is_made_here) return inputs + ". So most of the error comes from there.";
    const bool is_rounded = is_narrow(row.after);
    if (!is_rounded) return inputs + ". So this operator makes the error, or makes it larger" + losses_of(row) + ".";
    return fmt::format("{}. So the error is made here, by the rounding to {}{}{}.", inputs, to_string(row.after), by_rule(row),
                       losses_of(row));
}

} // namespace

std::string verdict_of(const Comparison &comparison, const std::vector<bool> &is_shown) {
    const int different = comparison.first_different(is_shown), first = comparison.first_beyond(is_shown);
    const auto row_at = [&](int place) -> const ComparedTensor & { return comparison.rows[static_cast<size_t>(place)]; };
    std::string text = different < 0 ? "Both policies give the same bits in these tensors.\n" : "No tensor is beyond its limit.\n";
    if (first >= 0)
        text = fmt::format("The first tensor beyond its limit is {}: its relative error is {}, the limit is {}. {}\n",
                           described(comparison, row_at(first)), short_number(row_at(first).difference.relative),
                           short_number(row_at(first).limit), reason_of(comparison, row_at(first)));
    if (const int bad = comparison.first_non_finite(is_shown); bad >= 0)
        text +=
            fmt::format("Under both policies, the first tensor with an infinity or a NaN is {}. So the second policy is not the reason.\n",
                        described(comparison, row_at(bad)));
    if (different >= 0 && different != first)
        text +=
            fmt::format("The first tensor that differs is {}{}.\n", described(comparison, row_at(different)), by_rule(row_at(different)));
    for (const auto &[role, pass] : {std::pair(Role::primal, "forward"), std::pair(Role::cotangent, "backward")}) {
        const int rounding = comparison.largest_rounding(is_shown, role);
        if (rounding < 0 || rounding == first) continue;
        text += fmt::format("The largest error of a single rounding in the {} pass is {}, in {}{}{}.\n", pass,
                            short_number(row_at(rounding).rounding), described(comparison, row_at(rounding)), by_rule(row_at(rounding)),
                            losses_of(row_at(rounding)));
    }
    return text;
}

std::string to_text(const Comparison &comparison, const std::vector<bool> &is_shown, const std::vector<std::string> &names) {
    std::vector<std::vector<std::string>> rows{{"", "tensor", names[0], names[1], "error", "of inputs", "limit", "SQNR dB",
                                                "largest difference", "amax", "amax", "policy", "scope", "source"}};
    size_t equal = 0;
    const int first = comparison.first_beyond(is_shown);
    for (size_t i = 0; i < comparison.rows.size(); i++) {
        const ComparedTensor &row = comparison.rows[i];
        if (!is_shown[i]) continue;
        equal += row.difference.is_equal;
        if (!row.difference.is_equal) rows.push_back(cells_of(row, comparison.tensors[row.tensor], static_cast<int>(i) == first));
    }
    std::string text = in_columns(rows) + "\n";
    if (equal > 0) text += fmt::format("equal under both policies, not listed: {} tensors and copies\n", equal);
    if (!comparison.uncompared.empty())
        text += fmt::format("not compared, because the kernels do not have them: {} tensors, see --json\n", comparison.uncompared.size());
    if (comparison.has_loops) text += "tensors of a loop are compared in its last step\n";
    return text + verdict_of(comparison, is_shown);
}

std::string to_json(const Comparison &comparison, const std::vector<bool> &is_shown, const std::vector<std::string> &names) {
    CompareJson rows = CompareJson::array();
    CompareJson first = nullptr;
    for (size_t i = 0; i < comparison.rows.size(); i++) {
        if (!is_shown[i]) continue;
        if (static_cast<int>(i) == comparison.first_beyond(is_shown)) first = rows.size();
        rows.push_back(row_json(comparison.rows[i], comparison.tensors[comparison.rows[i].tensor]));
    }
    const CompareJson made{{"numerics", names},
                           {"tensors", rows},
                           {"first_beyond", first},
                           {"uncompared", comparison.uncompared},
                           {"verdict", verdict_of(comparison, is_shown)}};
    return made.dump(2, ' ', false, CompareJson::error_handler_t::replace) + "\n";
}

} // namespace scalide

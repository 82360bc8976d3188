#include "tool/run_program.h"
#include "ir/words.h"
#include "tool/tables.h"
#include "tool/value_ranges.h"
#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace scalide {

namespace {

/// More operators than these do not help.
constexpr size_t most_suspects = 3;

std::string place_of(const Node &node) {
    const std::string line = short_place(node.location, "");
    return node.op + (node.scope.empty() ? "" : " in " + node.scope) + (line.empty() ? "" : fmt::format(" ({})", line));
}

} // namespace

RunProgram::RunProgram(const Program &program) : program_(program), directions_(program), producers_(producers(program)) {
    for (size_t value = 0; value < program.values.size(); value++) values_[program.values[value].name] = static_cast<ValueId>(value);
    for (const Result &result : program.results) values_.try_emplace(result.name, result.value);
    for (size_t i = 0; i < program.nodes.size(); i++)
        for (const Region &region : program.nodes[i].regions) add_names(*region, static_cast<int>(i));
    for (size_t i = 0; i < program.nodes.size(); i++)
        if (program.nodes[i].results.size() == 1)
            by_operator_[key_of(program.nodes[i])].emplace_back(static_cast<int>(i), program.nodes[i].results[0]);
}

void RunProgram::add_names(const Program &region, int loop) {
    for (const Value &value : region.values) loops_.try_emplace(value.name, loop);
    for (const Node &node : region.nodes) {
        by_operator_[key_of(node)].emplace_back(loop, -1);
        for (const Region &inner : node.regions) add_names(*inner, loop);
    }
}

std::string RunProgram::key_of(const Node &node) const {
    return node.op + '\n' + node.scope + '\n' + std::string(to_string(directions_.of(node)));
}

/// A tensor without a name has the path of its operator. Its operators are in one place if they are one node, or are all in one loop.
std::pair<int, ValueId> RunProgram::place_of_operator(const LoggedTensor &tensor) const {
    if (const auto loop = loops_.find(tensor.tensor); loop != loops_.end()) return {loop->second, -1};
    const auto found = by_operator_.find(tensor.op + '\n' + tensor.scope + '\n' + tensor.direction);
    if (found == by_operator_.end()) return {-1, -1};
    const auto is_first = [&](const auto &other) { return other.first == found->second.front().first; };
    return std::ranges::all_of(found->second, is_first) ? found->second.front() : std::pair{-1, -1};
}

std::vector<int> RunProgram::positions(const RunLog &log) const {
    std::vector<int> made;
    for (const LoggedTensor &tensor : log.tensors) {
        const ValueId value = value_of(tensor);
        made.push_back(value >= 0 ? producers_[value] : position_of(tensor, made.empty() ? -1 : made.back()));
    }
    return made;
}

int RunProgram::position_of(const LoggedTensor &tensor, int before) const {
    const int place = place_of_operator(tensor).first;
    return place < 0 ? before : place;
}

ValueId RunProgram::value_of(const LoggedTensor &tensor) const {
    const auto found = values_.find(tensor.tensor);
    return found == values_.end() ? place_of_operator(tensor).second : found->second;
}

void RunProgram::cite_lines(RunLog &log) const {
    for (LoggedTensor &tensor : log.tensors) {
        const ValueId value = value_of(tensor);
        if (value >= 0 && producers_[value] >= 0 && tensor.source.starts_with(program_.name + ".scl:"))
            tensor.source = short_place(program_.nodes[producers_[value]].location, "-");
    }
}

bool RunProgram::is_argument(const LoggedTensor &tensor) const {
    const ValueId value = value_of(tensor);
    return value >= 0 && producers_[value] < 0;
}

bool RunProgram::is_state(const LoggedTensor &tensor) const {
    const ValueId value = value_of(tensor);
    return std::ranges::any_of(program_.arguments, [&](const Argument &each) { return each.value == value && each.inout; });
}

bool RunProgram::is_always_zero(const LoggedTensor &tensor) const {
    const ValueId value = value_of(tensor);
    return value >= 0 && ValueRanges(program_, {}).range(value).magnitude() == 0;
}

std::string RunProgram::producer_of(const LoggedTensor &tensor) const {
    const ValueId value = value_of(tensor) < 0 ? -1 : copied_value(program_, producers_, value_of(tensor));
    return value < 0 || producers_[value] < 0 ? "" : place_of(program_.nodes[static_cast<size_t>(producers_[value])]);
}

std::string RunProgram::operator_of(const LoggedTensor &tensor) const {
    const ValueId value = value_of(tensor) < 0 ? -1 : copied_value(program_, producers_, value_of(tensor));
    return value < 0 || producers_[value] < 0 ? "" : program_.nodes[static_cast<size_t>(producers_[value])].op;
}

int RunProgram::update_of(const LoggedTensor &state, const RunLog &log) const {
    const ValueId value = value_of(state);
    for (const Result &result : program_.results) {
        if (result.argument < 0 || program_.arguments[static_cast<size_t>(result.argument)].value != value) continue;
        const auto found = std::ranges::find_if(log.tensors, [&](const LoggedTensor &each) { return value_of(each) == result.value; });
        if (found != log.tensors.end()) return static_cast<int>(found - log.tensors.begin());
    }
    return -1;
}

std::map<ValueId, double> RunProgram::magnitudes(const RunLog &log, const std::vector<float> &amax) const {
    std::map<ValueId, double> known;
    for (size_t i = 0; i < std::min(amax.size(), log.tensors.size()); i++)
        if (const ValueId value = value_of(log.tensors[i]); value >= 0 && amax[i] >= 0 && std::isfinite(amax[i])) known[value] = amax[i];
    return known;
}

std::string RunProgram::reason_of(const LoggedTensor &tensor, const RunLog &log, const std::vector<float> &amax) const {
    const ValueId value = value_of(tensor);
    if (const int loop = place_of_operator(tensor).first; value < 0 && loop >= 0)
        return place_of(program_.nodes[static_cast<size_t>(loop)]) + ", a loop whose numbers can grow in each of its steps";
    if (value < 0 || producers_[value] < 0) return "";
    ValueRanges ranges(program_, magnitudes(log, amax));
    const std::vector<Suspect> suspects = ranges.suspects(value);
    const std::optional<Dtype> format = parse_dtype(tensor.format);
    const double magnitude = suspects.empty() && format && is_float(*format) ? ranges.range(value).magnitude() : 0;
    if (std::isfinite(magnitude) && magnitude > 0 && magnitude > largest_of(*format) && size_of(*format) < 4)
        return fmt::format("its conversion to {0}: the numbers of {1} can reach {2:.4g}, and {0} ends at {3:.6g}", tensor.format,
                           producer_of(tensor), magnitude, largest_of(*format));
    std::vector<std::string> places;
    for (const Suspect &suspect : suspects) {
        std::string place = place_of(program_.nodes[static_cast<size_t>(suspect.node)]) + ", " + suspect.reason;
        if (std::ranges::find(places, place) == places.end()) places.push_back(std::move(place));
    }
    const size_t more = places.size() > most_suspects ? places.size() - most_suspects : 0;
    places.resize(places.size() - more);
    return fmt::format("{}{}", fmt::join(places, ", or "), more == 0 ? "" : fmt::format(", or {} later operators", more));
}

std::optional<double> RunProgram::factor_of(ValueId value, ValueId state) const {
    value = copied_value(program_, producers_, value);
    if (value == state) return 1;
    if (producers_[value] < 0 || program_.nodes[static_cast<size_t>(producers_[value])].op != "mul") return std::nullopt;
    const std::vector<ValueId> &operands = program_.nodes[static_cast<size_t>(producers_[value])].operands;
    for (const size_t own : {0, 1}) {
        const int factor = producers_[copied_value(program_, producers_, operands[1 - own])];
        if (copied_value(program_, producers_, operands[own]) == state && factor >= 0 &&
            program_.nodes[static_cast<size_t>(factor)].op == "constant")
            return to_number(program_.nodes[static_cast<size_t>(factor)].attributes.at("value"));
    }
    return std::nullopt;
}

double RunProgram::largest_update(const LoggedTensor &state, const RunLog &log, const std::vector<float> &amax) const {
    const ValueId value = value_of(state);
    for (const Result &result : program_.results) {
        if (result.argument < 0 || program_.arguments[static_cast<size_t>(result.argument)].value != value) continue;
        if (result.value == value) return 0;
        const int made = producers_[result.value];
        if (made < 0) continue;
        const Node &node = program_.nodes[static_cast<size_t>(made)];
        if (node.op != "sub" && node.op != "add" && node.op != "add_any") continue;
        ValueRanges ranges(program_, magnitudes(log, amax));
        for (const size_t old : {0, 1})
            if (const std::optional<double> factor = factor_of(node.operands[old], value))
                return (*factor == 1 ? 0 : std::abs(*factor - 1) * ranges.range(value).magnitude()) +
                       ranges.range(node.operands[1 - old]).magnitude();
    }
    return std::numeric_limits<double>::infinity();
}

} // namespace scalide

#include "transforms/analysis/origins.h"
#include "expr/base_operators.h"
#include "ir/dtype.h"
#include "transforms/analysis/operators.h"
#include <algorithm>
#include <cmath>
#include <set>

namespace scalide {

namespace {

/// True for names that passes give to new values: an operator's name, perhaps with a number, or the name of the expanded operator.
bool is_made_up(const std::string &name) {
    const std::string stem = name.substr(0, name.find_last_not_of("0123456789") + 1);
    return find_base_operator(stem) != nullptr || stem.starts_with("norm_");
}

/// A rounded copy has the tensor's name and a suffix: `v1.bf16` of `v1`.
bool is_form(const std::string &name, const std::string &of) { return name.starts_with(of + "."); }

/// True for a scalar or a broadcast scalar.
bool is_factor(const Program &program, const std::vector<int> &producers, ValueId value) {
    if (program.type(value).is_scalar()) return true;
    const Node *node = producers[value] < 0 ? nullptr : &program.nodes[producers[value]];
    return node != nullptr && node->op == "broadcast_in_dim" && program.type(node->operands[0]).is_scalar();
}

/// Returns the number of a constant or of a broadcast constant.
std::optional<double> constant_of(const Program &program, const std::vector<int> &producers, ValueId value) {
    const Node *node = producers[value] < 0 ? nullptr : &program.nodes[producers[value]];
    if (node != nullptr && node->op == "broadcast_in_dim")
        node = producers[node->operands[0]] < 0 ? nullptr : &program.nodes[producers[node->operands[0]]];
    if (node == nullptr || node->op != "constant") return {};
    return to_number(node->attributes.at("value"));
}

bool is_largest_of_a_format(double number) {
    return std::ranges::any_of(all_dtypes(), [&](Dtype dtype) {
        return is_narrow(dtype) && is_float(dtype) && decode(format_of(dtype), format_of(dtype).max_code) == number;
    });
}

} // namespace

std::optional<Limited> limited_operand(const Program &program, const std::vector<int> &producers, const Node &node) {
    if (node.op == "select_n") { // between limited numbers and others, which are infinite or NaN
        for (size_t i = 1; i < node.operands.size(); i++) {
            const int maker = producers[node.operands[i]];
            const auto limited = maker < 0 ? std::nullopt : limited_operand(program, producers, program.nodes[maker]);
            if (limited) return Limited{node.operands[i], limited->largest};
        }
    }
    if (node.op != "min" && node.op != "max") return {};
    for (const size_t other : {1, 0}) {
        const std::optional<double> limit = constant_of(program, producers, node.operands[other]);
        if (limit && (*limit > 0) == (node.op == "min") && is_largest_of_a_format(std::abs(*limit)))
            return Limited{node.operands[1 - other], std::abs(*limit)};
    }
    return {};
}

ValueId formed_operand(const Program &program, const std::vector<int> &producers, const Node &node) {
    if (node.op == "convert_element_type" || node.op == "reshape" || node.op == "round_by_bits") return node.operands[0];
    if (const auto limited = limited_operand(program, producers, node)) return limited->operand;
    if (node.op != "mul" && node.op != "div") return -1;
    if (is_factor(program, producers, node.operands[1])) return node.operands[0];
    return node.op == "mul" && is_factor(program, producers, node.operands[0]) ? node.operands[1] : -1;
}

Origins::Origins(const Program &program, const Directions &directions)
    : program_(program), directions_(directions), producers_(producers(program)), arguments_(program.values.size(), -1),
      constants_(program.values.size(), false), magnitudes_(program.values.size(), -1), measured_(program.values.size(), -1) {
    for (size_t i = 0; i < program.arguments.size(); i++) arguments_[program.arguments[i].value] = static_cast<int>(i);
    for (size_t i = 0; i < program.values.size(); i++) by_name_.emplace(program.values[i].name, static_cast<ValueId>(i));
    for (const Node &node : program.nodes) measure(node);
}

/// Follows magnitudes (abs), their amax or sum, and what operators compute from it and from constants only.
void Origins::measure(const Node &node) {
    const auto set = [&](std::vector<ValueId> &row, ValueId tensor) {
        for (const ValueId result : node.results) row[result] = tensor;
    };
    const BaseOperator *const base = find_base_operator(node.op);
    const bool is_constant = std::ranges::all_of(node.operands, [&](ValueId operand) { return constants_[operand]; });
    for (const ValueId result : node.results) constants_[result] = is_constant;
    if (is_constant || base == nullptr) return;
    if (node.op == "abs") set(magnitudes_, node.operands[0]);
    const ValueId formed = moves_one_array(node) ? node.operands[0] : formed_operand(program_, producers_, node);
    if (formed >= 0) set(magnitudes_, magnitudes_[formed]);
    if (node.op == "reduce_max" || node.op == "reduce_sum") set(measured_, magnitudes_[node.operands[0]]);
    if (base->shape != Shape::elementwise && base->shape != Shape::movement) return;
    ValueId tensor = -1;
    for (const ValueId operand : node.operands) {
        if (constants_[operand]) continue;
        if (measured_[operand] < 0 || (tensor >= 0 && measured_[operand] != tensor)) return;
        tensor = measured_[operand];
    }
    set(measured_, tensor);
}

/// Returns the operand of which the node makes a copy: in another form, moved, or divided by scales that come from its own magnitudes.
ValueId Origins::copied(const Node &node) const {
    if (moves_one_array(node)) return node.operands[0];
    const ValueId formed = formed_operand(program_, producers_, node);
    if (formed >= 0 || (node.op != "div" && node.op != "mul")) return formed;
    const ValueId scaled = measured_[node.operands[1]];
    return scaled >= 0 && of(scaled).tensor == of(node.operands[0]).tensor ? node.operands[0] : -1;
}

Origin Origins::computed(const std::string &tensor, const Node &node) const {
    if (node.location.line == 0 && !tensor.empty() && moves_one_array(node)) { // a copy that a pass made
        Origin origin = of(node.operands[0]);
        origin.tensor = tensor;
        return origin;
    }
    Origin origin{tensor, node.location, node.op, node.scope, directions_.of(node)};
    if (tensor.empty()) origin.tensor = origin.path();
    return origin;
}

Origin Origins::of(ValueId value) const {
    std::set<ValueId> seen; // a value is made from data that carries its own name
    while (true) {
        seen.insert(value);
        const Value &row = program_.values[value];
        if (producers_[value] < 0) {
            const Argument &argument = program_.arguments[arguments_[value]];
            return {argument.part.of.empty() ? row.part.array(row.name) : argument.part.of, argument.location};
        }
        const Node &node = program_.nodes[producers_[value]];
        const auto whole = by_name_.find(row.part.of);
        // A pass may give the name of a tensor that it replaced to another value.
        const auto is_whole = [&] { return row.part.is_scale() || program_.type(whole->second).shape == row.type.shape; };
        if (whole != by_name_.end() && !seen.contains(whole->second) && is_whole()) {
            value = whole->second;
            continue;
        }
        const std::string &name = row.part.array(row.name);
        const bool is_copy = !node.operands.empty() && row.part.of.empty() && is_form(row.name, program_.value_name(node.operands[0]));
        if (!is_copy && !is_made_up(name)) return computed(name, node);
        const ValueId next = is_copy ? node.operands[0] : measured_[value] >= 0 ? measured_[value] : copied(node);
        if (next < 0 || seen.contains(next)) return computed("", node);
        value = next;
    }
}

namespace {

std::map<std::string, Origin> origins_of(const Program &program, const Directions &directions) {
    const Origins origins(program, directions);
    std::map<std::string, Origin> found;
    for (size_t value = 0; value < program.values.size(); value++)
        found.emplace(program.values[value].name, origins.of(static_cast<ValueId>(value)));
    for (const Node &node : program.nodes)
        for (const Region &region : node.regions) found.merge(origins_of(*region, directions));
    const std::vector<int> makers = producers(program);
    for (const Result &result : program.results) {
        const int maker = makers[result.value];
        Origin origin = origins.of(result.value);
        if (maker >= 0 && program.nodes[maker].location.line > 0) origin.location = program.nodes[maker].location;
        origin.tensor = result.part.array(result.name);
        found.insert_or_assign(result.name, origin);
        if (result.argument >= 0) found.insert_or_assign(program.value_name(result.value), origin);
    }
    return found;
}

} // namespace

std::map<std::string, Origin> origins_by_name(const Program &program) { return origins_of(program, Directions(program)); }

} // namespace scalide

#include "transforms/origins.h"
#include "expr/base_operators.h"

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

} // namespace

ValueId formed_operand(const Program &program, const std::vector<int> &producers, const Node &node) {
    if (node.op == "convert_element_type" || node.op == "reshape" || node.op == "round_by_bits") return node.operands[0];
    if (node.op != "mul" && node.op != "div") return -1;
    if (is_factor(program, producers, node.operands[1])) return node.operands[0];
    return node.op == "mul" && is_factor(program, producers, node.operands[0]) ? node.operands[1] : -1;
}

Origins::Origins(const Program &program) : program_(program), producers_(producers(program)), arguments_(program.values.size(), -1) {
    for (size_t i = 0; i < program.arguments.size(); i++) arguments_[program.arguments[i].value] = static_cast<int>(i);
}

Origin Origins::of(ValueId value) const {
    while (true) {
        const Value &row = program_.values[value];
        if (producers_[value] < 0) {
            const Argument &argument = program_.arguments[arguments_[value]];
            return {argument.part.array(row.name), argument.location};
        }
        const Node &node = program_.nodes[producers_[value]];
        const bool goes_on = !node.operands.empty() &&
                             (is_made_up(row.name) || !row.part.of.empty() || is_form(row.name, program_.value_name(node.operands[0])));
        if (!goes_on) return {row.name, node.location};
        const ValueId formed = formed_operand(program_, producers_, node);
        value = formed < 0 ? node.operands[0] : formed;
    }
}

std::map<std::string, Origin> origins_by_name(const Program &program) {
    const Origins origins(program);
    std::map<std::string, Origin> found;
    for (size_t value = 0; value < program.values.size(); value++)
        found.emplace(program.values[value].name, origins.of(static_cast<ValueId>(value)));
    const std::vector<int> makers = producers(program);
    for (const Result &result : program.results) {
        const int maker = makers[result.value];
        const Location location = maker < 0 ? origins.of(result.value).location : program.nodes[maker].location;
        found.insert_or_assign(result.name, Origin{result.part.array(result.name), location});
    }
    return found;
}

} // namespace scalide

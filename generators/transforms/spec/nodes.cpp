#include "kinds/dot_general.h"
#include "kinds/kernel_view.h"
#include "rulebook/builder.h"
#include "transforms/analysis/operators.h"
#include "transforms/calls/calls.h"
#include "transforms/spec/invariants.h"
#include <algorithm>

namespace scalide {

namespace {

std::string say(const Program &program, const Node &node, const std::string &requirement, const std::string &got) {
    return node.op + "." + program.value_name(node.results[0]) + ": " + requirement + ", got " + got;
}

} // namespace

std::string why_not_typed(const Program &program, const Node &node, const Rulebook &rulebook) {
    if (find_call_kind(node.op) != nullptr) return "";                // verify() compares a call with its program
    if (is_collective(node.op) && node.results.size() > 1) return ""; // combine_collectives() made it
    const Rule *rule = rulebook.find(node.op);
    if (rule == nullptr && find_base_operator(node.op) != nullptr) return ""; // base operators of passes, which small rulebooks lack
    if (rule == nullptr) return say(program, node, "must have a rule", node.op);
    std::vector<Type> operands;
    for (const ValueId operand : node.operands) operands.push_back(program.type(operand));
    Attributes attributes = node.attributes;
    std::vector<Type> types;
    try {
        types = infer_result_types(*rule, operands, attributes, node.location);
    } catch (const UserError &error) {
        return error.what();
    }
    if (types.size() != node.results.size())
        return say(program, node, "must have " + std::to_string(types.size()) + " results", std::to_string(node.results.size()));
    for (size_t i = 0; i < types.size(); i++)
        if (program.type(node.results[i]) != types[i])
            return say(program, node, "must have the type " + to_string(types[i]), to_string(program.type(node.results[i])));
    return "";
}

std::string why_not_wide(const Program &program, const Node &node) {
    const BaseOperator *base = find_base_operator(node.op);
    const bool computes = base && !moves_elements(*base) && base->shape != Shape::source;
    if (!computes || converts(*base)) return "";
    for (const std::vector<ValueId> *values : {&node.operands, &node.results})
        for (const ValueId value : *values)
            if (is_narrow(program.type(value).dtype))
                return say(program, node, "must compute in 32 bits", program.value_name(value) + ": " + to_string(program.type(value)));
    return "";
}

std::string why_not_base(const Program &program, const Node &node) {
    if (find_base_operator(node.op) == nullptr) return say(program, node, "must be a base operator", node.op);
    if (node.op != "dot_general") return "";
    const auto axes = several_axes_of_a_kind(program, node);
    return axes ? say(program, node, "must have at most one axis of each kind", std::to_string(axes->free) + " free") : "";
}

} // namespace scalide

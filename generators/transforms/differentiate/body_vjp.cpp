#include "transforms/differentiate/body_vjp.h"
#include "ir/rewrite.h"
#include "transforms/differentiate/vjp.h"
#include <algorithm>

namespace scalide {

std::vector<bool> BodyVjp::is_cotangent() const {
    std::vector<bool> is_made(program.values.size(), false);
    for (const ValueId cotangent : cotangents)
        if (cotangent >= 0) is_made[cotangent] = true;
    for (size_t i = first_node; i < program.nodes.size(); i++)
        for (const ValueId result : program.nodes[i].results) is_made[result] = true;
    return is_made;
}

std::vector<ValueId> BodyVjp::residuals() const {
    std::vector<bool> is_read(program.values.size(), false), is_made = is_cotangent();
    for (const ValueId gradient : gradients)
        if (gradient >= 0) is_read[gradient] = true;
    for (size_t i = program.nodes.size(); i-- > first_node;) {
        const Node &node = program.nodes[i];
        if (std::ranges::none_of(node.results, [&](ValueId result) { return is_read[result]; })) continue;
        for (const ValueId operand : node.operands) is_read[operand] = true;
    }
    std::vector<ValueId> values;
    for (size_t i = 0; i < is_read.size(); i++)
        if (is_read[i] && !is_made[i]) values.push_back(static_cast<ValueId>(i));
    return values;
}

BodyVjp differentiate_body(Program region, const Rulebook &rulebook, const std::vector<bool> &results, const std::vector<bool> &arguments) {
    BodyVjp body{std::move(region), 0, std::vector<ValueId>(results.size(), -1), std::vector<ValueId>(arguments.size(), -1)};
    Program &program = body.program;
    std::vector<ValueId> outputs, cotangents, wrt;
    for (size_t i = 0; i < results.size(); i++) {
        if (!results[i]) continue;
        outputs.push_back(program.results[i].value);
        body.cotangents[i] = add_value(program, "ct_" + program.results[i].name, program.type(outputs.back()));
        cotangents.push_back(body.cotangents[i]);
    }
    for (size_t i = 0; i < arguments.size(); i++)
        if (arguments[i]) wrt.push_back(program.arguments[i].value);
    const Vjp vjp = append_partial_vjp(program, rulebook, outputs, cotangents, wrt);
    body.first_node = vjp.first_node;
    for (size_t i = 0, next = 0; i < arguments.size(); i++)
        if (arguments[i]) body.gradients[i] = vjp.gradients[next++];
    return body;
}

void NodeCopies::add(const Node &node) {
    Node fresh = node;
    for (ValueId &operand : fresh.operands) operand = map_[operand];
    for (ValueId &result : fresh.results) {
        map_[result] = add_value(to_, from_.value_name(result), from_.type(result), from_.values[result].part);
        result = map_[result];
    }
    to_.nodes.push_back(std::move(fresh));
}

ValueId NodeCopies::add_argument(ValueId from, Supply supply, bool inout) {
    map_[from] = add_value(to_, from_.value_name(from), from_.type(from));
    to_.arguments.push_back({.value = map_[from], .inout = inout, .location = {}, .supply = supply});
    return map_[from];
}

ValueId append_zeros(Builder &builder, Type type) {
    const ValueId zero = builder.constant(0, type.dtype);
    return builder.broadcast(zero, type.shape);
}

Program empty_region(const Program &region) {
    Program program;
    program.name = region.name;
    program.symbols = region.symbols;
    program.programs = region.programs;
    return program;
}

Region finish_region(Program program) { return close_region(remove_dead_nodes(std::move(program))); }

} // namespace scalide

#include "transforms/calls/calls.h"
#include "transforms/analysis/passes.h"
#include "transforms/calls/bind_symbols.h"
#include "transforms/calls/einsum.h"
#include "transforms/calls/user_reductions.h"
#include <algorithm>

namespace scalide {

namespace {

/// Returns the arguments that `wrt` lists.
std::vector<ValueId> arguments_by(const Node &node, const Program &callee) {
    const auto wrt = node.attributes.find("wrt");
    if (wrt == node.attributes.end() || wrt->second.list.empty()) {
        throw UserError({node.location, node.op + ".wrt", "must list arguments of " + callee.name, "an empty list", ""});
    }
    std::vector<ValueId> values;
    for (const Attribute &name : wrt->second.list) {
        const auto found = std::ranges::find_if(callee.arguments,
                                                [&](const Argument &argument) { return callee.value_name(argument.value) == name.word; });
        const bool is_good = found != callee.arguments.end() && is_float(callee.type(found->value).dtype);
        if (!is_good)
            throw UserError({node.location, node.op + ".wrt", "must list float arguments of " + callee.name, to_string(name), ""});
        values.push_back(found->value);
    }
    return values;
}

ValueId loss_of(const Node &node, const Program &callee) {
    std::vector<ValueId> losses;
    for (const Result &result : callee.results) {
        if (callee.type(result.value).is_scalar() && is_float(callee.type(result.value).dtype)) losses.push_back(result.value);
    }
    if (losses.size() == 1) return losses[0];
    throw UserError({node.location, node.op + ".program", "must have exactly one float scalar result (the loss)",
                     std::to_string(losses.size()) + " in " + callee.name, ""});
}

std::vector<Type> types_of(const Program &program, const std::vector<ValueId> &values) {
    std::vector<Type> types;
    for (const ValueId value : values) types.push_back(program.type(value));
    return types;
}

Program named_callee(const CallPlace &place, const Program &named) {
    return bind_symbols(place.node, named, place.operands, place.symbols);
}

Program reduction(const CallPlace &place, const Program &named) {
    return reduce_by_program(place.node, named, place.operands, place.rulebook);
}

Program window_reduction(const CallPlace &place, const Program &named) {
    return reduce_windows_by_program(place.node, named, place.operands, place.rulebook);
}

Program sum_of_products(const CallPlace &place, const Program &) { return einsum_program(place.node, place.operands, place.rulebook); }

std::vector<Type> call_types(const Node &, const Program &callee) {
    std::vector<Type> types;
    for (const Result &result : callee.results) types.push_back(callee.type(result.value));
    return types;
}

std::vector<Type> value_and_grad_types(const Node &node, const Program &callee) {
    std::vector<ValueId> values = arguments_by(node, callee);
    values.insert(values.begin(), loss_of(node, callee));
    return types_of(callee, values);
}

std::vector<Type> grad_types(const Node &node, const Program &callee) {
    std::vector<Type> types = value_and_grad_types(node, callee);
    types.erase(types.begin());
    return types;
}

Program call_body(const Node &, const Program &callee, const Rulebook &) { return callee; }

Program value_and_grad_body(const Node &node, const Program &callee, const Rulebook &rulebook) {
    Program body = callee;
    const ValueId loss = loss_of(node, callee);
    std::erase_if(body.results, [&](const Result &result) { return result.value != loss; });
    const std::vector<ValueId> gradients = append_gradient(body, rulebook, loss, arguments_by(node, callee));
    for (const ValueId gradient : gradients) body.results.push_back({body.value_name(gradient), gradient});
    return body;
}

Program grad_body(const Node &node, const Program &callee, const Rulebook &rulebook) {
    Program body = value_and_grad_body(node, callee, rulebook);
    body.results.erase(body.results.begin());
    return body;
}

constexpr CallKind kinds[] = {
    {"call", true, named_callee, call_types, call_body},
    {"grad", true, named_callee, grad_types, grad_body},
    {"value_and_grad", true, named_callee, value_and_grad_types, value_and_grad_body},
    {"reduce", true, reduction, call_types, call_body},
    {"reduce_window", true, window_reduction, call_types, call_body},
    {"einsum", false, sum_of_products, call_types, call_body},
};

} // namespace

const CallKind *find_call_kind(std::string_view op) {
    const auto *found = std::ranges::find(kinds, op, &CallKind::op);
    return found == std::end(kinds) ? nullptr : found;
}

Program callee_of(const CallKind &kind, const CallPlace &place, const std::vector<Program> &programs) {
    const Node &call = place.node;
    if (!kind.names_program) return kind.callee(place, {});
    const auto name = call.attributes.find("program");
    const auto found = name == call.attributes.end() ? programs.end() : std::ranges::find(programs, name->second.word, &Program::name);
    if (found != programs.end()) return kind.callee(place, *found);
    if (name == call.attributes.end()) throw UserError(statement(call.location, call.op + " needs the attribute 'program'"));
    throw UserError(unknown_name(call.location, "sub-program", to_string(name->second), "A sub-program must be defined before it is used"));
}

} // namespace scalide

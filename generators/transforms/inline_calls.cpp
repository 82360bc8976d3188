#include "ir/rewrite.h"
#include "transforms/calls.h"
#include "transforms/passes.h"

namespace scalide {

namespace {

/// `mlp/0` within `encoder`: `encoder/mlp/0`.
std::string within(const std::string &outer, const std::string &inner) {
    return outer.empty() || inner.empty() ? outer + inner : outer + "/" + inner;
}

/// Appends the nodes of `body` in the place of `call`.
void inline_body(Rewriter &rewriter, const Node &call, const Program &body) {
    std::vector<ValueId> map(body.values.size(), -1);
    const std::vector<ValueId> operands = rewriter(call.operands);
    for (size_t i = 0; i < operands.size(); i++) map[body.arguments[i].value] = operands[i];
    for (const Node &node : body.nodes) {
        Node fresh = node;
        for (ValueId &operand : fresh.operands) operand = map[operand];
        for (ValueId &result : fresh.results) {
            map[result] = add_value(rewriter.result(), body.value_name(result), body.type(result));
            result = map[result];
        }
        fresh.scope = within(call.scope, node.scope);
        if (call.role == Role::cotangent) fresh.role = Role::cotangent;
        rewriter.result().nodes.push_back(std::move(fresh));
    }
    for (size_t i = 0; i < call.results.size(); i++) rewriter.map(call.results[i], map[body.results[i].value]);
}

/// `programs`: what may be called, without calls of its own.
Program without_calls(const Program &program, const std::vector<Program> &programs, const Rulebook &rulebook) {
    Rewriter rewriter(program);
    rewriter.copy_arguments();
    for (const Node &node : program.nodes) {
        if (const CallKind *kind = find_call_kind(node.op)) {
            std::vector<Type> operands;
            for (const ValueId operand : node.operands) operands.push_back(program.type(operand));
            const Program callee = callee_of(*kind, {node, operands, program.symbols, rulebook}, programs);
            inline_body(rewriter, node, kind->body(node, callee, rulebook));
        } else {
            rewriter.copy(node);
        }
    }
    rewriter.copy_results();
    return rewriter.take();
}

} // namespace

Program inline_calls(const Program &program, const Rulebook &rulebook) {
    std::vector<Program> programs;
    for (const Program &callee : program.programs) programs.push_back(without_calls(callee, programs, rulebook));
    Program inlined = without_calls(program, programs, rulebook);
    inlined.programs.clear();
    return remove_dead_nodes(inlined);
}

} // namespace scalide

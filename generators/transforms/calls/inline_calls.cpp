#include "ir/rewrite.h"
#include "transforms/analysis/passes.h"
#include "transforms/analysis/splice.h"
#include "transforms/calls/calls.h"

namespace scalide {

namespace {

/// Returns the operands of a `grad` node for which it computes gradients.
std::vector<ValueId> differentiated(const Node &node, const Program &callee) {
    std::vector<ValueId> values;
    for (const Attribute &name : node.attributes.at("wrt").list)
        for (size_t i = 0; i < node.operands.size(); i++)
            if (callee.value_name(callee.arguments[i].value) == name.word) values.push_back(node.operands[i]);
    return values;
}

/// `programs`: the programs that may be called, already without calls. The gradient of `program` may need them again.
Program without_calls(const Program &program, const std::vector<Program> &programs, const Rulebook &rulebook) {
    Rewriter rewriter(program);
    rewriter.copy_arguments();
    for (const Node &node : program.nodes) {
        if (const CallKind *kind = find_call_kind(node.op)) {
            std::vector<Type> operands;
            for (const ValueId operand : node.operands) operands.push_back(program.type(operand));
            Program callee = callee_of(*kind, {node, operands, program.symbols, rulebook}, programs);
            callee.programs = programs;
            if (node.attributes.contains("wrt")) refuse_gradient_of_constants(program, differentiated(node, callee), node.location);
            Node call = node;
            call.operands = rewriter(node.operands);
            const std::vector<ValueId> results = append_body(rewriter.result(), kind->body(node, callee, rulebook), call);
            for (size_t i = 0; i < node.results.size(); i++) rewriter.map(node.results[i], results[i]);
        } else {
            rewriter.copy(node);
        }
    }
    rewriter.copy_results();
    return rewriter.take();
}

/// Removes sub-programs that only gradients call. The gradients exist at this point.
Program without_programs(Program program, const Rulebook &rulebook) {
    for (size_t i = program.nodes.size(); i-- > 0;) {
        if (program.nodes[i].attributes.contains("program")) replace_node(program, rulebook, i, expand_value);
    }
    program.programs.clear();
    return program;
}

} // namespace

Program inline_calls(const Program &program, const Rulebook &rulebook) {
    std::vector<Program> programs;
    for (const Program &callee : program.programs) programs.push_back(without_calls(callee, programs, rulebook));
    Program inlined = without_programs(without_calls(program, programs, rulebook), rulebook);
    return remove_dead_nodes(std::move(inlined));
}

} // namespace scalide

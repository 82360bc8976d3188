#include "ir/regions.h"
#include "ir/rewrite.h"
#include "transforms/analysis/passes.h"
#include "transforms/analysis/splice.h"
#include "transforms/calls/calls.h"
#include "transforms/calls/core_regions.h"
#include "transforms/calls/unroll.h"
#include <algorithm>

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

/// Makes the captures of constants constants, or makes them captures again.
void mark_constants(const Program &program, const Node &node, Program &region, Supply mark) {
    const LoopView view(node);
    for (size_t i = 0; i < region.arguments.size(); i++) {
        const ValueId operand = view.operands[i] < 0 ? -1 : node.operands[static_cast<size_t>(view.operands[i])];
        const auto outer = std::ranges::find(program.arguments, operand, &Argument::value);
        Argument &argument = region.arguments[i];
        if (is_capture(argument) && outer != program.arguments.end() && outer->supply == Supply::constant) argument.supply = mark;
    }
}

Program without_calls(Program program, const std::vector<Program> &programs, const Rulebook &rulebook);

/// Inlines the calls in the regions of a node. Nothing trains constants, in regions neither.
void inline_in_regions(const Program &program, Node &node, const std::vector<Program> &programs, const Rulebook &rulebook) {
    const Node source = node;
    rewrite_regions(node, program, [&](Program region) {
        mark_constants(program, source, region, Supply::constant);
        region = without_calls(std::move(region), programs, rulebook);
        mark_constants(program, source, region, Supply::run);
        return region;
    });
}

/// `programs`: the programs that may be called, already without calls. The gradient of `program` may need them again.
Program without_calls(Program program, const std::vector<Program> &programs, const Rulebook &rulebook) {
    for (Node &node : program.nodes)
        if (!node.regions.empty()) inline_in_regions(program, node, programs, rulebook);
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
    for (Node &node : program.nodes)
        rewrite_regions(node, program, [&](Program region) { return without_programs(std::move(region), rulebook); });
    for (size_t i = program.nodes.size(); i-- > 0;) {
        if (program.nodes[i].attributes.contains("program")) replace_node(program, rulebook, i, expand_value);
    }
    program.programs.clear();
    return program;
}

} // namespace

Program inline_calls(const Program &program, const Rulebook &rulebook, Unroll unroll) {
    std::vector<Program> programs;
    for (const Program &callee : program.programs) programs.push_back(without_calls(callee, programs, rulebook));
    Program inlined = without_calls(program, programs, rulebook);
    if (unroll == Unroll::all) {
        unroll_regions(inlined, rulebook);
    } else {
        if (unroll == Unroll::possible) unroll_possible_regions(inlined, rulebook);
        if (unroll == Unroll::short_ones) unroll_short_regions(inlined, rulebook);
        to_core_regions(inlined, rulebook);
        place_in_scopes(inlined);
    }
    return remove_dead_nodes(without_programs(std::move(inlined), rulebook));
}

} // namespace scalide

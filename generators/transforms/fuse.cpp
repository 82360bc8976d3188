#include "ir/rewrite.h"
#include "transforms/factor_scales.h"
#include "transforms/fuse_calls.h"
#include "transforms/fuse_extract.h"
#include "transforms/fuse_merge.h"
#include "transforms/fuse_normalize.h"
#include "transforms/fuse_order.h"
#include "transforms/fuse_overwrites.h"
#include "transforms/fuse_repeat.h"
#include "transforms/fuse_report.h"
#include "transforms/fuse_shown.h"
#include "transforms/fuse_stores.h"
#include "transforms/fuse_sums.h"
#include "transforms/fuse_tiled.h"
#include "transforms/write_calls.h"
#include <functional>

namespace scalide {

namespace {

void merge_all(Groups &groups, const TargetFacts &facts) {
    order_overwrites(groups);
    merge_calls(groups, facts);
    merge_along_edges(groups);
    merge_tiled(groups, facts);
    merge_sums(groups);
    merge_side_by_side(groups);
    merge_scalars(groups);
}

/// What is cheaper to repeat shows when the kernels are known; then they are formed anew.
std::set<int> find_repeated(const Program &program, const TargetFacts &facts) {
    const FuseGraph graph(program);
    Groups groups(graph);
    merge_all(groups, facts);
    return cheaper_to_repeat(groups);
}

/// What kernels store shows when they are known; then they are formed anew.
Program shape_stores(Program program, const TargetFacts &facts) {
    const auto rewritten = [&](const std::function<Program(const Groups &)> &rewrite) {
        const FuseGraph graph(program, find_repeated(program, facts));
        Groups groups(graph);
        merge_all(groups, facts);
        return rewrite(groups);
    };
    if (facts.products.empty()) program = rewritten(reduce_rows_first);
    const auto dtype = program.attributes.find("intermediates");
    if (dtype == program.attributes.end()) return program;
    return rewritten([&](const Groups &groups) { return narrow_intermediates(groups, *parse_dtype(dtype->second.word)); });
}

} // namespace

Fusion fuse_and_explain(const Program &program, const TargetFacts &facts) {
    const Program shown = add_shown_results(remove_dead_nodes(program));
    const Program called = write_calls(factor_scales(shown, facts), facts);
    const Program prepared = shape_stores(copy_shared_results(move_reduced_axes_last(called)), facts);
    const FuseGraph graph(prepared, find_repeated(prepared, facts));
    Groups groups(graph);
    merge_all(groups, facts);
    const std::vector<int> order = run_order(groups);
    Fusion fusion{extract_kernels(groups, order), explain_fusion(groups, order)};
    for (size_t call = 0; call < order.size(); ++call)
        fusion.report.kernels[call].kernel = fusion.program.nodes[call].attributes.at("program").word;
    drop_shown_results(fusion.program, program.results.size());
    return fusion;
}

Program fuse(const Program &program, const TargetFacts &facts) { return fuse_and_explain(program, facts).program; }

} // namespace scalide

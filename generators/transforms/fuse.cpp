#include "ir/rewrite.h"
#include "transforms/factor_scales.h"
#include "transforms/fuse_calls.h"
#include "transforms/fuse_extract.h"
#include "transforms/fuse_merge.h"
#include "transforms/fuse_normalize.h"
#include "transforms/fuse_order.h"
#include "transforms/fuse_overwrites.h"
#include "transforms/fuse_packing.h"
#include "transforms/fuse_repeat.h"
#include "transforms/fuse_report.h"
#include "transforms/fuse_shown.h"
#include "transforms/fuse_stores.h"
#include "transforms/fuse_sums.h"
#include "transforms/fuse_tiled.h"
#include "transforms/write_calls.h"
#include <memory>

namespace scalide {

namespace {

void merge_all(Groups &groups, const TargetFacts &facts) {
    internal_check(order_overwrites(groups), "fuse: an inout argument is overwritten before it is read");
    merge_calls(groups, facts);
    merge_along_edges(groups);
    merge_tiled(groups, facts);
    merge_sums(groups);
    merge_side_by_side(groups);
    merge_scalars(groups);
}

/// The kernels of a program. What is cheaper to repeat shows when they are known; then they are formed anew.
class Kernels {
public:
    Kernels(const Program &program, const TargetFacts &facts) {
        form(program, facts, {});
        std::set<int> repeated = cheaper_to_repeat(*groups_);
        if (facts.prepares_kernels) repeated = rounded_in_packing(*groups_, repeated);
        if (!repeated.empty()) form(program, facts, repeated);
    }
    const Groups &groups() const { return *groups_; }

private:
    void form(const Program &program, const TargetFacts &facts, const std::set<int> &repeated) {
        graph_ = std::make_unique<FuseGraph>(program, facts.prepares_kernels, repeated);
        groups_ = std::make_unique<Groups>(*graph_);
        merge_all(*groups_, facts);
    }

    std::unique_ptr<FuseGraph> graph_;
    std::unique_ptr<Groups> groups_;
};

/// What kernels store shows when they are known; then they are formed anew.
Program shape_stores(Program program, const TargetFacts &facts) {
    const bool may_reduce_rows =
        facts.products.empty() && std::ranges::any_of(program.nodes, [&](const Node &node) { return is_largest_of_all(program, node); });
    if (may_reduce_rows) program = reduce_rows_first(Kernels(program, facts).groups());
    const auto dtype = program.attributes.find("intermediates");
    if (dtype == program.attributes.end()) return program;
    return narrow_intermediates(Kernels(program, facts).groups(), *parse_dtype(dtype->second.word));
}

Program prepare(const Program &program, const TargetFacts &facts) {
    const Program called = write_calls(factor_scales(add_shown_results(remove_dead_nodes(program)), facts), facts);
    return shape_stores(copy_shared_results(move_reduced_axes_last(called), facts.prepares_kernels), facts);
}

} // namespace

Fusion fuse_and_explain(const Program &program, const TargetFacts &facts) {
    const Program prepared = prepare(program, facts);
    const Kernels kernels(prepared, facts);
    const std::vector<int> order = run_order(kernels.groups());
    Fusion fusion{extract_kernels(kernels.groups(), order), explain_fusion(kernels.groups(), order)};
    for (size_t call = 0; call < order.size(); ++call)
        fusion.report.kernels[call].kernel = fusion.program.nodes[call].attributes.at("program").word;
    drop_shown_results(fusion.program, program.results.size());
    return fusion;
}

Program fuse(const Program &program, const TargetFacts &facts) {
    const Program prepared = prepare(program, facts);
    const Kernels kernels(prepared, facts);
    Program fused = extract_kernels(kernels.groups(), run_order(kernels.groups()));
    drop_shown_results(fused, program.results.size());
    return fused;
}

} // namespace scalide

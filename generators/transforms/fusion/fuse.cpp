#include "transforms/fusion/fuse.h"
#include "ir/rewrite.h"
#include "transforms/fusion/combine_collectives.h"
#include "transforms/fusion/extract.h"
#include "transforms/fusion/groups/overwrites.h"
#include "transforms/fusion/merge/calls.h"
#include "transforms/fusion/merge/merge.h"
#include "transforms/fusion/merge/order.h"
#include "transforms/fusion/merge/packing.h"
#include "transforms/fusion/merge/repeat.h"
#include "transforms/fusion/merge/small.h"
#include "transforms/fusion/merge/sums.h"
#include "transforms/fusion/merge/tiled.h"
#include "transforms/fusion/normalize.h"
#include "transforms/fusion/report.h"
#include "transforms/fusion/shown.h"
#include "transforms/fusion/split_regions.h"
#include "transforms/fusion/stores.h"
#include "transforms/library/factor_scales.h"
#include "transforms/library/write_calls.h"
#include <algorithm>
#include <memory>

namespace scalide {

namespace {

void merge_all(Groups &groups, const TargetFacts &facts, bool merges_small) {
    merge_calls(groups, facts);
    merge_along_edges(groups);
    merge_tiled(groups, facts);
    merge_sums(groups);
    merge_side_by_side(groups);
    merge_scalars(groups);
    if (merges_small && facts.prepares_kernels) merge_small(groups);
}

/// The kernels of a program. Kernels are formed again after the first attempt, because only then is it known which values are cheaper to
/// recompute than to store. The second attempt is skipped if `place_stores` has already found all such values.
class Kernels {
public:
    Kernels(const Program &program, const TargetFacts &facts, bool merges_small)
        : program_(program), facts_(facts), merges_small_(merges_small) {
        const std::set<int> known = repeated_nodes(program);
        if (!known.empty() && form(known) && find_repeated().where_ordered.empty()) return;
        internal_check(form({}), "fuse: an inout argument is overwritten before it is read");
        const Repeated found = find_repeated();
        if (found.where_ordered.empty() || form(found.where_ordered) || form(found.always)) return;
        // Each node can be repeated, but all of them together would order the readers of inout arguments in a circle. Nothing is repeated.
        internal_check(form({}), "fuse: an inout argument is overwritten before it is read");
    }
    const Groups &groups() const { return *groups_; }

private:
    /// Returns false if an argument would be overwritten before all of its readers have run.
    bool form(const std::set<int> &repeated) {
        groups_.reset();
        graph_ = std::make_unique<FuseGraph>(program_, facts_.prepares_kernels, repeated);
        groups_ = std::make_unique<Groups>(*graph_);
        if (!order_overwrites(*groups_)) return false;
        merge_all(*groups_, facts_, merges_small_);
        return true;
    }

    /// Nodes that are cheaper to recompute than to store. Each node of `always` can be recomputed. `where_ordered` contains `always`, and
    /// nodes that can be recomputed only if readers of inout arguments can still be ordered.
    struct Repeated {
        std::set<int> always, where_ordered;
    };
    Repeated find_repeated() const {
        Repeated found{cheaper_to_repeat(*groups_), {}};
        RoundedInPacking rounded = facts_.prepares_kernels ? rounded_in_packing(*groups_) : RoundedInPacking();
        found.always.merge(rounded.always);
        found.where_ordered = std::move(rounded.where_ordered);
        found.where_ordered.insert(found.always.begin(), found.always.end());
        return found;
    }

    const Program &program_;
    const TargetFacts &facts_;
    const bool merges_small_;
    std::unique_ptr<FuseGraph> graph_;
    std::unique_ptr<Groups> groups_;
};

/// Forms kernels to see what they would store. form_kernels() forms them again afterwards.
Program place_stores(const Program &program, const TargetFacts &facts) {
    const auto is_largest = [&](const Node &node) { return is_largest_of_all(program, node); };
    const auto dtype = program.attributes.find("intermediates");
    Stores stores;
    stores.rows_first = facts.products.empty() && std::ranges::any_of(program.nodes, is_largest);
    if (dtype != program.attributes.end()) stores.intermediates = parse_dtype(dtype->second.word);
    return stores.rows_first || stores.intermediates ? place_stores(Kernels(program, facts, false).groups(), stores) : program;
}

/// Runs a pass on each program without regions.
template<auto pass>
Program lifted(const Program &program, const TargetFacts &facts) {
    return map_straight(program, [&](const Program &straight, bool) { return pass(straight, facts); });
}

constexpr auto move_axes_pass = [](const Program &program, const TargetFacts &) { return move_reduced_axes(program); };
constexpr auto scatter_pass = [](const Program &program, const TargetFacts &) { return scatter_into_arguments(program); };
constexpr auto copy_results_pass = [](const Program &program, const TargetFacts &facts) {
    return copy_shared_results(program, facts.prepares_kernels);
};

constexpr FusionPass passes[] = {
    {"show_results", [](const Program &program, const TargetFacts &) { return add_shown_results(remove_dead_nodes(program)); }},
    {"combine_collectives", [](const Program &program, const TargetFacts &) { return combine_collectives(program); }},
    {"split_at_regions", [](const Program &program, const TargetFacts &) { return split_at_regions(program); }},
    {"factor_scales", lifted<factor_scales>},
    {"write_calls", lifted<write_calls>},
    {"move_reduced_axes", lifted<move_axes_pass>},
    {"scatter_into_arguments", lifted<scatter_pass>},
    {"copy_shared_results", lifted<copy_results_pass>},
    {"place_stores", lifted<place_stores>},
};

/// Appends the report about the kernels of a straight region.
void append(FusionReport &report, FusionReport part) {
    const int first = static_cast<int>(report.kernels.size());
    std::ranges::move(part.kernels, std::back_inserter(report.kernels));
    for (UnfusedEdge &edge : part.edges) {
        edge.producer += first;
        edge.consumer += first;
        report.edges.push_back(std::move(edge));
    }
}

Program form_straight(const Program &shaped, const TargetFacts &facts, bool is_in_loop, KernelSet &set, FusionReport *report) {
    const Kernels kernels(shaped, facts, is_in_loop);
    const std::vector<int> order = run_order(kernels.groups());
    Program fused = extract_kernels(kernels.groups(), order, set);
    if (report != nullptr) {
        FusionReport part = explain_fusion(kernels.groups(), order);
        for (size_t call = 0; call < order.size(); ++call) {
            part.kernels[call].kernel = fused.nodes[call].attributes.at("program").word;
            for (const ValueId value : fused.nodes[call].results) part.kernels[call].values.push_back(fused.value_name(value));
        }
        append(*report, std::move(part));
    }
    fused.attributes.erase(repeated_attribute);
    return fused;
}

} // namespace

std::span<const FusionPass> fusion_passes() { return passes; }

Program run_fusion_passes(const Program &program, const TargetFacts &facts) {
    Program shaped = program;
    for (const FusionPass &pass : passes) shaped = pass.run(shaped, facts);
    return shaped;
}

Program form_kernels(const Program &shaped, const TargetFacts &facts, FusionReport *report) {
    KernelSet set;
    if (report != nullptr) *report = {};
    Program fused = map_straight(
        shaped, [&](const Program &straight, bool is_in_loop) { return form_straight(straight, facts, is_in_loop, set, report); });
    fused.programs = set.take();
    drop_shown_results(fused);
    return fused;
}

Program fuse(const Program &program, const TargetFacts &facts) { return form_kernels(run_fusion_passes(program, facts), facts); }

Fusion fuse_and_explain(const Program &program, const TargetFacts &facts) {
    Fusion fusion;
    fusion.program = form_kernels(run_fusion_passes(program, facts), facts, &fusion.report);
    return fusion;
}

} // namespace scalide

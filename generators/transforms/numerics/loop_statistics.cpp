#include "transforms/numerics/loop_statistics.h"
#include "ir/regions.h"
#include "rulebook/builder.h"
#include "transforms/analysis/operators.h"

namespace scalide {

namespace {

constexpr double no_place = 2147483647; ///< SCALIDE_PART_FIRST of a step without an infinity or a NaN

/// Joins the numbers of all steps of a loop, by name.
class StepJoiner {
public:
    StepJoiner(Builder &builder, std::map<std::string, ValueId> stacks) : builder_(builder), stacks_(std::move(stacks)) {}

    /// Replaces the numbers of a tensor by results of the program. The shape of the tensor gets an axis for the steps.
    void join(CollectedStatistic &tensor, const Extent &length) {
        elements_ = element_count(tensor.shape);
        tensor_ = &tensor;
        for (size_t part = 0; part < tensor.results.size(); part++) {
            const std::string &name = tensor.results[part];
            if (!name.empty()) builder_.program().results.push_back({name, joined(static_cast<StatisticPart>(part))});
        }
        tensor.shape.insert(tensor.shape.begin(), length);
    }

private:
    bool has(StatisticPart part) const { return !tensor_->results[static_cast<size_t>(part)].empty(); }
    ValueId stack(StatisticPart part) const { return stacks_.at(tensor_->results[static_cast<size_t>(part)]); }
    ValueId reduce(const char *op, ValueId stack) { return builder_.add_one(op, {stack}, reduce_attributes({0})); }
    ValueId spread(ValueId scalar, ValueId like) { return builder_.broadcast(scalar, builder_.type(like).shape); }

    ValueId joined(StatisticPart part) {
        switch (part) {
        case StatisticPart::amax:
        case StatisticPart::scale: return reduce("reduce_max", stack(part));
        case StatisticPart::small_squares:
            return has(StatisticPart::large_squares) ? reduce("reduce_sum", stack(part)) : weighted_squares();
        case StatisticPart::first_non_finite: return first_place();
        default: return reduce("reduce_sum", stack(part));
        }
    }

    /// Squares of data are in units of the scale of their step. The sum is in units of the largest scale: q * (s / max(s))^2.
    ValueId weighted_squares() {
        const ValueId scales = stack(StatisticPart::scale), largest = spread(reduce("reduce_max", scales), scales);
        const ValueId ratio = builder_.add_one("divide_no_nan", {scales, largest});
        const ValueId weight = builder_.add_one("mul", {ratio, ratio});
        return reduce("reduce_sum", builder_.add_one("mul", {stack(StatisticPart::small_squares), weight}));
    }

    /// The row-major index in the stack: step * elements + index.
    ValueId first_place() {
        const ValueId places = stack(StatisticPart::first_non_finite), none = builder_.constant(no_place, Dtype::i32);
        const Extents &shape = builder_.type(places).shape;
        const ValueId steps =
            builder_.add_one("iota", {}, {{"dtype", std::string("i32")}, {"shape", to_attribute(shape)}, {"dimension", int64_t(0)}});
        const ValueId from = builder_.add_one("mul", {steps, spread(builder_.size(elements_, Dtype::i32), places)});
        const ValueId is_none = builder_.add_one("eq", {places, spread(none, places)});
        return reduce("reduce_min", builder_.add_one("select_n", {is_none, builder_.add_one("add", {from, places}), spread(none, places)}));
    }

    Builder &builder_;
    const std::map<std::string, ValueId> stacks_;
    const CollectedStatistic *tensor_ = nullptr;
    Extent elements_ = 1;
};

/// Makes the results of a body from number `first` on results of the loop: stacks, by name.
std::map<std::string, ValueId> add_stacks(Program &program, size_t loop, Program body, size_t first) {
    std::map<std::string, ValueId> stacks;
    Node node = program.nodes[loop];
    const Extent length = *length_of(node);
    for (size_t i = first; i < body.results.size(); i++) {
        const Result &result = body.results[i];
        const ValueId stack = add_value(program, result.name, stacked(body.type(result.value), length));
        node.results.push_back(stack);
        stacks.emplace(result.name, stack);
    }
    node.regions.back() = close_region(std::move(body));
    program.nodes[loop] = std::move(node);
    return stacks;
}

} // namespace

std::vector<LoopSites> loop_sites(const Program &program, const Directions &directions, const Rulebook &rulebook,
                                  const std::map<std::string, NamedTensor> &source) {
    std::vector<LoopSites> loops;
    for (size_t i = 0; i < program.nodes.size(); i++) {
        const Node &node = program.nodes[i];
        if ((node.op != "scan" && node.op != "map") || !length_of(node)) continue;
        const Program &body = *node.regions.back();
        LoopSites loop{i, sites_in_body(body, directions, rulebook, source), loop_sites(body, directions, rulebook, source)};
        if (!loop.sites.empty() || !loop.loops.empty()) loops.push_back(std::move(loop));
    }
    return loops;
}

void visit_sites(const std::vector<LoopSites> &loops, const std::function<void(const StatisticsSite &site)> &visit) {
    for (const LoopSites &loop : loops) {
        for (const StatisticsSite &site : loop.sites) visit(site);
        visit_sites(loop.loops, visit);
    }
}

std::vector<CollectedStatistic> collect_in_loop(Program &program, const LoopSites &loop, const Rulebook &rulebook, size_t first,
                                                const CollectSites &collect) {
    Program body = open_region(program.nodes[loop.node].regions.back(), program);
    const size_t own_results = body.results.size();
    std::vector<CollectedStatistic> collected = collect(body, loop.sites, first);
    for (const LoopSites &inner : loop.loops) {
        const std::vector<CollectedStatistic> made = collect_in_loop(body, inner, rulebook, first + collected.size(), collect);
        collected.insert(collected.end(), made.begin(), made.end());
    }
    if (body.results.size() == own_results) return collected;
    const Extent length = *length_of(program.nodes[loop.node]);
    std::map<std::string, ValueId> stacks = add_stacks(program, loop.node, std::move(body), own_results);
    Builder builder(rulebook, program);
    StepJoiner joiner(builder, std::move(stacks));
    for (CollectedStatistic &tensor : collected) joiner.join(tensor, length);
    return collected;
}

} // namespace scalide

#include "transforms/calls/unroll.h"
#include "expr/base_operators.h"
#include "ir/regions.h"
#include "rulebook/builder.h"
#include "transforms/analysis/operators.h"
#include "transforms/analysis/splice.h"
#include <algorithm>
#include <limits>

namespace scalide {

namespace {

constexpr int64_t longest_unroll = 64;
constexpr size_t most_unrolled_nodes = 1000000; // as many as a text may have
/// Limits for loops that become nodes although they could stay loops. A step of a loop costs some 20 ns in the runtime, but the kernels of
/// two steps are never one.
constexpr int64_t most_short_steps = 2, most_short_nodes = 64;
/// Elementwise steps are one kernel for up to 120 nodes, so a large array is read and written once for many steps. 32 steps of 10 nodes on
/// 100,000 elements, which a cache holds, take 248 us as nodes and 220 us as a loop (AMD EPYC, 2 cores, 2026-11-28).
constexpr int64_t most_elementwise_nodes = 512;
constexpr size_t most_nodes_of_branch = 16;
constexpr int most_cost_of_branch = 12;

using Values = std::vector<ValueId>;

/// Appends the nodes of one loop or branch, whose operands are values of the builder's program.
class Unrolling {
public:
    Unrolling(Builder &builder, const Node &node)
        : builder_(builder), node_(node), first_(static_cast<ValueId>(builder.program().values.size())) {}

    /// Returns the values, each of them made here and once, so that the results of the node keep their ids.
    Values own(Values values) {
        for (size_t i = 0; i < values.size(); i++) {
            const bool is_known = values[i] < first_ || std::find(values.begin(), values.begin() + static_cast<ptrdiff_t>(i), values[i]) <
                                                            values.begin() + static_cast<ptrdiff_t>(i);
            if (is_known) values[i] = builder_.add_one("reshape", {values[i]}, reshape_attributes(builder_.type(values[i]).shape));
        }
        return values;
    }

    Values loop() {
        if (node_.op == "while") refuse_length("a number that its test decides");
        const LoopView view(node_);
        const Program &body = *node_.regions.back();
        const int64_t count = steps();
        Values carries;
        for (size_t i = 0; i < body.arguments.size(); i++)
            if (view.carries[i] >= 0) carries.push_back(node_.operands[static_cast<size_t>(view.operands[i])]);
        std::vector<Values> stacked(static_cast<size_t>(count));
        for (int64_t i = 0; i < count; i++) {
            const int64_t step = has_flag(node_, "reverse") ? count - 1 - i : i;
            Values results = append_region(body, arguments(view, body, carries, step));
            stacked[static_cast<size_t>(step)].assign(results.begin() + view.carry_count, results.end());
            results.resize(static_cast<size_t>(view.carry_count));
            carries = std::move(results);
        }
        for (size_t r = carries.size(), stack = 0; r < node_.results.size(); r++, stack++)
            carries.push_back(stack_of(body.type(body.results[r].value), stacked, stack));
        return carries;
    }

    Values branches() {
        const Values operands(node_.operands.begin() + 1, node_.operands.end());
        std::vector<Values> made;
        for (const Region &branch : node_.regions) made.push_back(append_region(*branch, operands));
        if (node_.op == "cond") std::swap(made[0], made[1]); // select_n takes the case of `false` first
        if (made.size() == 1) return made[0];
        const ValueId which = selector();
        Values results;
        for (size_t i = 0; i < made[0].size(); i++) {
            Values cases{which};
            for (const Values &branch : made) cases.push_back(branch[i]);
            results.push_back(builder_.add_one("select_n", cases));
        }
        return results;
    }

private:
    int64_t steps() const {
        const std::optional<Extent> length = length_of(node_);
        const bool is_short = length && length->is_static() && length->value() <= longest_unroll;
        if (is_short) return length->value();
        refuse_length(length ? to_string(*length) : "a number that an operand gives");
    }

    [[noreturn]] void refuse_length(const std::string &got) const {
        throw UserError({node_.location, node_.op, "a loop that is unrolled must have a static number of at most 64 steps", got,
                         "Loops with 'unroll', and loops under policies that round operands at random, are unrolled: build with another "
                         "policy, or write the loop in the application"});
    }

    Values append_region(const Program &region, const Values &arguments) {
        if (builder_.program().nodes.size() + region.nodes.size() > most_unrolled_nodes)
            throw UserError({node_.location, node_.op, "unrolled loops must have at most " + std::to_string(most_unrolled_nodes) + " nodes",
                             "more", "Write the outer loop in the application"});
        Node call = node_;
        call.operands = arguments;
        call.role = Role::primal; // nodes of a region keep their roles
        return append_body(builder_.program(), region, call);
    }

    Values arguments(const LoopView &view, const Program &body, const Values &carries, int64_t step) {
        Values values;
        for (size_t i = 0; i < body.arguments.size(); i++) {
            const Supply supply = body.arguments[i].supply;
            if (supply == Supply::step) {
                const Extent lower = node_.op == "fori" ? node_.attributes.at("lower").integer : Extent(0);
                values.push_back(builder_.size(lower + Extent(step), Dtype::i32));
            } else if (view.carries[i] >= 0) {
                values.push_back(carries[static_cast<size_t>(view.carries[i])]);
            } else {
                const ValueId operand = node_.operands[static_cast<size_t>(view.operands[i])];
                values.push_back(supply == Supply::each ? element(operand, step) : operand);
            }
        }
        return values;
    }

    ValueId element(ValueId array, int64_t step) {
        const Extents shape = builder_.type(array).shape;
        SliceBounds bounds{Extents(shape.size(), 0), shape, std::vector<int64_t>(shape.size(), 1)};
        bounds.start[0] = step;
        bounds.limit[0] = step + 1;
        const ValueId row = builder_.add_one("slice", {array}, slice_attributes(bounds));
        return builder_.add_one("reshape", {row}, reshape_attributes({shape.begin() + 1, shape.end()}));
    }

    ValueId stack_of(const Type &type, const std::vector<Values> &stacked, size_t number) {
        Extents shape = type.shape;
        shape.insert(shape.begin(), 1);
        Values rows;
        for (const Values &step : stacked) rows.push_back(builder_.add_one("reshape", {step[number]}, reshape_attributes(shape)));
        if (!rows.empty()) return builder_.add_one("concatenate", rows, {{"dimension", 0}});
        shape[0] = 0;
        return builder_.add_one("broadcast_in_dim", {builder_.constant(0, type.dtype)}, broadcast_attributes(shape, {}));
    }

    /// Returns the index of the branch, within their number.
    ValueId selector() {
        const ValueId index = node_.operands[0];
        if (node_.op == "cond") return index;
        const auto last = static_cast<double>(node_.regions.size()) - 1;
        const ValueId least = builder_.add_one("max", {index, builder_.constant(0, Dtype::i32)});
        const ValueId clamped = builder_.add_one("min", {least, builder_.constant(last, Dtype::i32)});
        return node_.regions.size() == 2 ? builder_.convert(clamped, Dtype::boolean) : clamped;
    }

    Builder &builder_;
    const Node &node_;
    ValueId first_; ///< the first new value
};

Values unrolled(Builder &builder, const Node &node) {
    Unrolling unrolling(builder, node);
    return unrolling.own(find_region_kind(node.op)->is_loop ? unrolling.loop() : unrolling.branches());
}

/// Returns the number of nodes of a program, with those in regions.
size_t count_nodes(const Program &program) {
    size_t count = 0;
    visit_programs(program, [&](const Program &each) { count += each.nodes.size(); });
    return count;
}

/// True if all operators are elementwise, move elements or make constants, and cost at most `most_cost`. They run with their neighbours in
/// one kernel.
bool is_elementwise(const Program &region, int most_cost) {
    return std::ranges::all_of(region.nodes, [&](const Node &node) {
        const BaseOperator *op = find_base_operator(node.op);
        const bool is_simple =
            op != nullptr && (op->shape == Shape::elementwise || op->shape == Shape::movement || op->shape == Shape::source);
        return is_simple && op->cost <= most_cost && !op->reads_indices;
    });
}

/// True for branches that cost less than the choice.
bool are_cheap(const std::vector<Region> &branches) {
    return std::ranges::all_of(branches, [](const Region &branch) {
        return branch->nodes.size() <= most_nodes_of_branch && is_elementwise(*branch, most_cost_of_branch);
    });
}

bool is_short(const Node &node) {
    if (!find_region_kind(node.op)->is_loop) return node.op == "straight" || are_cheap(node.regions);
    if (has_flag(node, "unroll")) return true;
    const std::optional<Extent> length = length_of(node);
    if (!length || !length->is_static()) return false;
    const int64_t steps = length->value(), nodes = static_cast<int64_t>(count_nodes(*node.regions[0]));
    const int64_t most = is_elementwise(*node.regions[0], std::numeric_limits<int>::max()) ? most_elementwise_nodes : most_short_nodes;
    return steps <= most_short_steps || (steps <= longest_unroll && steps * nodes <= most);
}

/// True if unroll_regions() can replace the node.
bool can_unroll(const Node &node) {
    if (node.regions.empty()) return true;
    const std::optional<Extent> length = length_of(node);
    const bool is_loop = find_region_kind(node.op)->is_loop;
    const bool is_static = !is_loop || (node.op != "while" && length && length->is_static() && length->value() <= longest_unroll);
    return is_static &&
           std::ranges::all_of(node.regions, [](const Region &region) { return std::ranges::all_of(region->nodes, can_unroll); });
}

void unroll_where(Program &program, const Rulebook &rulebook, bool (*chooses)(const Node &)) {
    for (Node &node : program.nodes)
        rewrite_regions(node, program, [&](Program region) {
            unroll_where(region, rulebook, chooses);
            return region;
        });
    replace_nodes(program, rulebook,
                  [&](const Program &, const Node &node) { return !node.regions.empty() && chooses(node) ? unrolled : Remake(); });
}

} // namespace

void unroll_regions(Program &program, const Rulebook &rulebook) {
    replace_nodes(program, rulebook, [](const Program &, const Node &node) { return node.regions.empty() ? Remake() : unrolled; });
}

void unroll_possible_regions(Program &program, const Rulebook &rulebook) { unroll_where(program, rulebook, can_unroll); }

void unroll_short_regions(Program &program, const Rulebook &rulebook) { unroll_where(program, rulebook, is_short); }

} // namespace scalide

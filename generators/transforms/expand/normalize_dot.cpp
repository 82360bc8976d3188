#include "transforms/expand/normalize_dot.h"
#include "transforms/analysis/operators.h"
#include <algorithm>
#include <numeric>

namespace scalide {

namespace {

enum AxisKind { batch_axes, free_axes, contracted_axes, group_count };

/// The axes of one operand by group, in the order in which they are merged.
using AxesByKind = std::vector<std::vector<int64_t>>;

std::vector<AxesByKind> groups_of(const Program &program, const Node &dot) {
    const DotAxes axes = dot_axes(dot);
    std::vector<size_t> order(axes.lhs_contract.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::sort(order, {}, [&](size_t i) { return axes.lhs_contract[i]; });
    std::vector<int64_t> lhs_contract, rhs_contract;
    for (const size_t i : order) {
        lhs_contract.push_back(axes.lhs_contract[i]);
        rhs_contract.push_back(axes.rhs_contract[i]);
    }
    const auto free_of = [&](int operand, const std::vector<int64_t> &batched, const std::vector<int64_t> &contracted) {
        return other_axes(program.type(dot.operands[operand]).rank(), batched, contracted);
    };
    return {{axes.lhs_batch, free_of(0, axes.lhs_batch, lhs_contract), lhs_contract},
            {axes.rhs_batch, free_of(1, axes.rhs_batch, rhs_contract), rhs_contract}};
}

/// An operand with one axis for each group. `axis[g]` is the axis of group g; -1: there is no batch axis.
struct Merged {
    ValueId value;
    std::vector<int64_t> axis;
};

Merged merge(Builder &builder, ValueId operand, const AxesByKind &groups) {
    std::vector<int> sequence;
    for (int group = 0; group < group_count; group++) {
        if (group != batch_axes || !groups[batch_axes].empty()) sequence.push_back(group);
    }
    const auto place = [&](int group) { return groups[group].empty() ? builder.type(operand).rank() : groups[group][0]; };
    std::ranges::stable_sort(sequence, {}, place);

    const Type type = builder.type(operand);
    std::vector<int64_t> order;
    Extents shape;
    Merged merged{operand, std::vector<int64_t>(group_count, -1)};
    for (const int group : sequence) {
        merged.axis[group] = static_cast<int64_t>(shape.size());
        Extent extent(1);
        for (const int64_t axis : groups[group]) {
            order.push_back(axis);
            extent = extent * type.shape[axis];
        }
        shape.push_back(extent);
    }
    if (!std::ranges::is_sorted(order)) merged.value = builder.add_one("transpose", {operand}, transpose_attributes(order));
    if (builder.type(merged.value).shape != shape) merged.value = builder.add_one("reshape", {merged.value}, reshape_attributes(shape));
    return merged;
}

Extent free_elements(const Program &program, const Node &dot, const std::vector<AxesByKind> &groups, int operand) {
    Extent count(1);
    for (const int64_t axis : groups[operand][free_axes]) count = count * program.type(dot.operands[operand]).shape[axis];
    return count;
}

/// Broadcasts `small`, whose free axes have extent 1, to the shape of `large`. Its batch and contracting axes are matched with those of
/// `large`.
ValueId lay_beside(Builder &builder, ValueId small, const AxesByKind &small_groups, ValueId large, const AxesByKind &large_groups) {
    std::vector<std::pair<int64_t, int64_t>> placed; // axis of large, axis of small
    for (const int group : {batch_axes, contracted_axes}) {
        for (size_t i = 0; i < large_groups[group].size(); i++) placed.emplace_back(large_groups[group][i], small_groups[group][i]);
    }
    std::ranges::sort(placed);
    std::vector<int64_t> dims, order;
    Extents shape;
    for (const auto &[to, from] : placed) {
        dims.push_back(to);
        order.push_back(from);
        shape.push_back(builder.type(small).shape[from]);
    }
    order.insert(order.end(), small_groups[free_axes].begin(), small_groups[free_axes].end());
    if (!std::ranges::is_sorted(order)) small = builder.add_one("transpose", {small}, transpose_attributes(order));
    if (builder.type(small).shape != shape) small = builder.add_one("reshape", {small}, reshape_attributes(shape));
    return builder.add_one("broadcast_in_dim", {small}, {{"shape", to_attribute(builder.type(large).shape)}, {"dims", to_attribute(dims)}});
}

/// Reduces to one number. The array is flattened, because a reduction over a whole array uses blocks and threads. A reduction of a single
/// row does not.
ValueId sum_of_all(Builder &builder, ValueId product, const Type &result) {
    const Extents line = {element_count(builder.type(product).shape)};
    const ValueId flat = builder.add_one("reshape", {product}, reshape_attributes(line));
    const ValueId sum = builder.add_one("reduce_sum", {flat}, reduce_attributes({0}));
    return builder.convert(builder.add_one("reshape", {sum}, reshape_attributes(result.shape)), result.dtype);
}

} // namespace

bool is_normal_dot(const Program &program, const Node &dot) {
    return std::ranges::all_of(groups_of(program, dot), [](const AxesByKind &groups) {
        return groups[batch_axes].size() <= 1 && groups[free_axes].size() == 1 && groups[contracted_axes].size() == 1;
    });
}

std::vector<ValueId> normalize_dot(Builder &builder, const Node &dot) {
    const std::vector<AxesByKind> groups = groups_of(builder.program(), dot);
    const Type result = builder.type(dot.results[0]);
    const Merged lhs = merge(builder, dot.operands[0], groups[0]), rhs = merge(builder, dot.operands[1], groups[1]);
    DotAxes axes{{lhs.axis[contracted_axes]}, {rhs.axis[contracted_axes]}, {}, {}};
    if (lhs.axis[batch_axes] >= 0) {
        axes.lhs_batch = {lhs.axis[batch_axes]};
        axes.rhs_batch = {rhs.axis[batch_axes]};
    }
    Attributes attributes = dot.attributes;
    for (const auto &[name, value] : dot_attributes(axes, result.dtype)) attributes[name] = value;
    const ValueId product = builder.add_one("dot_general", {lhs.value, rhs.value}, attributes);
    if (builder.type(product) == result) return {product};
    return {builder.add_one("reshape", {product}, reshape_attributes(result.shape))};
}

bool is_vector_dot(const Program &program, const Node &dot) {
    const std::vector<AxesByKind> groups = groups_of(program, dot);
    return free_elements(program, dot, groups, 0) == Extent(1) || free_elements(program, dot, groups, 1) == Extent(1);
}

std::vector<ValueId> dot_as_sum(Builder &builder, const Node &dot) {
    const std::vector<AxesByKind> groups = groups_of(builder.program(), dot);
    const int large = free_elements(builder.program(), dot, groups, 0) == Extent(1) ? 1 : 0;
    const Type result = builder.type(dot.results[0]);
    // Products of integers have the dtype of the result. Floats are multiplied in f32 already.
    const auto factor = [&](int side) {
        const ValueId operand = dot.operands[side];
        return is_float(result.dtype) ? operand : builder.convert(operand, result.dtype);
    };
    const ValueId matrix = factor(large);
    const Type type = builder.type(matrix);
    const ValueId vector = lay_beside(builder, factor(1 - large), groups[1 - large], matrix, groups[large]);
    const ValueId product = builder.add_one("mul", {matrix, vector});
    const std::vector<int64_t> &summed = groups[large][contracted_axes];
    if (element_count(result.shape) == Extent(1)) return {sum_of_all(builder, product, result)};
    ValueId sum = summed.empty() ? product : builder.add_one("reduce_sum", {product}, {{"axes", to_attribute(summed)}});
    // The remaining axes have the order of the matrix. The result has its batch axes first.
    std::vector<int64_t> left = groups[large][batch_axes];
    left.insert(left.end(), groups[large][free_axes].begin(), groups[large][free_axes].end());
    std::vector<int64_t> kept = other_axes(type.rank(), summed), order;
    for (const int64_t axis : left) order.push_back(std::ranges::find(kept, axis) - kept.begin());
    if (!std::ranges::is_sorted(order)) sum = builder.add_one("transpose", {sum}, transpose_attributes(order));
    if (builder.type(sum).shape != result.shape) sum = builder.add_one("reshape", {sum}, reshape_attributes(result.shape));
    return {builder.convert(sum, result.dtype)};
}

} // namespace scalide

#include "transforms/simplify/narrow_choices.h"
#include "expr/base_operators.h"
#include "transforms/analysis/operators.h"
#include <algorithm>
#include <cmath>
#include <limits>

namespace scalide {

namespace {

bool is_f32(double number) {
    if (std::isinf(number)) return true;
    return std::abs(number) <= std::numeric_limits<float>::max() && static_cast<double>(static_cast<float>(number)) == number;
}

/// Returns the f32 value that was widened to `value`, or a constant as f32. Returns nothing if there is none. Values that are not f64 are
/// returned unchanged.
std::optional<ValueId> in_f32(const Candidate &at, ValueId value) {
    const Type type = at.facts.program().type(value);
    if (type.dtype != Dtype::f64) return value;
    const Node *inner = at.facts.producer(value, "convert_element_type");
    if (inner != nullptr && at.facts.program().type(inner->operands[0]).dtype == Dtype::f32) return inner->operands[0];
    const auto number = at.facts.splat(value);
    if (!number || !is_f32(*number) || !type.is_scalar()) return {};
    return at.emit("constant", {}, constant_attributes(*number, Dtype::f32));
}

} // namespace

std::optional<ValueId> choose_in_f32(const Candidate &at) {
    const BaseOperator *op = find_base_operator(at.node.op);
    if (op == nullptr || !op->chooses) return {};
    const auto type_of = [&](ValueId value) { return at.facts.program().type(value).dtype; };
    if (std::ranges::none_of(at.node.operands, [&](ValueId value) { return type_of(value) == Dtype::f64; })) return {};
    std::vector<ValueId> operands;
    for (const ValueId operand : at.node.operands) {
        const auto narrow = in_f32(at, operand);
        if (!narrow) return {};
        operands.push_back(*narrow);
    }
    const ValueId chosen = at.emit(at.node.op, operands, at.node.attributes);
    return type_of(chosen) == at.type.dtype ? chosen : at.emit("convert_element_type", {chosen}, convert_attributes(at.type.dtype));
}

std::optional<ValueId> update_in_format(const Candidate &at) {
    if (at.node.op != "dynamic_update_slice" && at.node.op != "scatter") return {};
    std::vector<ValueId> operands = at.node.operands;
    for (const size_t index : {size_t(0), at.node.op == "scatter" ? size_t(2) : size_t(1)}) {
        const Node *widening = at.facts.producer(operands[index], "convert_element_type");
        if (widening == nullptr) return {};
        operands[index] = widening->operands[0];
    }
    const auto dtype_of = [&](ValueId value) { return at.facts.program().type(value).dtype; };
    const Dtype format = dtype_of(operands[0]);
    const bool is_widened = is_float(format) && is_float(at.type.dtype) && size_of(format) < size_of(at.type.dtype);
    if (!is_widened || dtype_of(operands[at.node.op == "scatter" ? 2 : 1]) != format) return {};
    return at.emit("convert_element_type", {at.emit(at.node.op, operands, at.node.attributes)}, convert_attributes(at.type.dtype));
}

namespace {

/// The windows of a scatter.
struct ScatterWindows {
    ScatterWindows(const Program &program, const Node &scatter)
        : array(program.type(scatter.operands[0]).shape), indices(program.type(scatter.operands[1]).shape),
          updates(program.type(scatter.operands[2]).shape), window(integers(scatter, "update_window_dims")),
          inserted(integers(scatter, "inserted_window_dims")), map(integers(scatter, "scatter_dims_to_operand_dims")),
          batching(integers(scatter, "operand_batching_dims")), index_batching(integers(scatter, "scatter_indices_batching_dims")) {}

    static std::vector<int64_t> integers(const Node &node, const char *name) { return to_integers(node.attributes.at(name)); }

    /// Returns the extents of a window, with 1 for inserted and batching axes.
    Extents sizes() const {
        Extents sizes(array.size(), Extent(1));
        const std::vector<int64_t> kept = other_axes(std::ssize(array), inserted, batching);
        for (size_t i = 0; i < kept.size(); i++) sizes[size_t(kept[i])] = updates[size_t(window[i])];
        return sizes;
    }

    /// True if no two windows belong to the same elements of batching axes. Then they cannot overlap.
    bool are_disjoint() const {
        for (size_t axis = 0; axis + 1 < indices.size(); axis++)
            if (indices[axis] != Extent(1) && std::ranges::find(index_batching, int64_t(axis)) == index_batching.end()) return false;
        return true;
    }

    /// True if there is one list of windows that overlap completely or not at all, and equal places have equal indices. Comparing all pairs
    /// of indices must be cheaper than to copy the array.
    bool are_places(const std::string &mode) const {
        const bool have_extent_one =
            std::ranges::all_of(map, [&](int64_t axis) { return std::ranges::find(inserted, axis) != inserted.end(); });
        if (indices.size() != 2 || !batching.empty() || !have_extent_one || mode == "clip" || !indices[0].is_static()) return false;
        const Extent elements = element_count(array);
        return elements.is_static() && indices[0].value() * indices[0].value() <= elements.value();
    }

    Extents array, indices, updates;
    std::vector<int64_t> window, inserted, map, batching, index_batching;
};

/// Returns for each index vector the number of the first equal one, as i32[count, 1].
ValueId first_equal(const Candidate &at, ValueId indices) {
    const Type type = at.facts.program().type(indices);
    const Extent count = type.shape[0];
    const Extents pairs = {count, count};
    ValueId equal = -1;
    for (int64_t part = 0; part < type.shape[1].value(); part++) {
        const SliceBounds bounds{{Extent(0), Extent(part)}, {count, Extent(part + 1)}, {1, 1}};
        const ValueId starts = at.emit("reshape", {at.emit("slice", {indices}, slice_attributes(bounds))}, reshape_attributes({count}));
        const ValueId same = at.emit("eq",
                                     {at.emit("broadcast_in_dim", {starts}, broadcast_attributes(pairs, {0})),
                                      at.emit("broadcast_in_dim", {starts}, broadcast_attributes(pairs, {1}))},
                                     {});
        equal = equal < 0 ? same : at.emit("and", {equal, same}, {});
    }
    const ValueId number =
        at.emit("iota", {}, {{"dtype", std::string("i32")}, {"shape", to_attribute(pairs)}, {"dimension", Attribute(int64_t(1))}});
    const ValueId none = at.emit("broadcast_in_dim", {at.emit("constant", {}, constant_attributes(double(count.value()), Dtype::i32))},
                                 broadcast_attributes(pairs, {}));
    const ValueId first = at.emit("reduce_min", {at.emit("select_n", {equal, none, number}, {})}, reduce_attributes({1}));
    return at.emit("reshape", {first}, reshape_attributes({count, Extent(1)}));
}

/// Combines all updates of a place with the old window of the place, and returns the new window for each update.
ValueId combine_by_place(const Candidate &at, const Node &scatter, const ScatterWindows &windows, ValueId old) {
    const ValueId first = first_equal(at, scatter.operands[1]);
    const int64_t axis = other_axes(std::ssize(windows.updates), windows.window)[0];
    Extents sizes = windows.updates;
    sizes[size_t(axis)] = Extent(1);
    const Attribute none = to_attribute(std::vector<int64_t>()), axes = to_attribute(std::vector<int64_t>{axis}),
                    window = to_attribute(windows.window), mode = std::string("promise_in_bounds");
    const ValueId made = at.emit(scatter.op, {old, first, scatter.operands[2]},
                                 {{"update_window_dims", window},
                                  {"inserted_window_dims", axes},
                                  {"scatter_dims_to_operand_dims", axes},
                                  {"operand_batching_dims", none},
                                  {"scatter_indices_batching_dims", none},
                                  {"mode", mode}});
    return at.emit("gather", {made, first},
                   {{"offset_dims", window},
                    {"collapsed_slice_dims", axes},
                    {"start_index_map", axes},
                    {"operand_batching_dims", none},
                    {"start_indices_batching_dims", none},
                    {"slice_sizes", to_attribute(sizes)},
                    {"mode", mode},
                    {"fill_value", Attribute(0.0)}});
}

Attributes gather_attributes(const Node &scatter, const ScatterWindows &windows) {
    const Attributes &of = scatter.attributes;
    return {{"offset_dims", of.at("update_window_dims")},
            {"collapsed_slice_dims", of.at("inserted_window_dims")},
            {"start_index_map", of.at("scatter_dims_to_operand_dims")},
            {"operand_batching_dims", of.at("operand_batching_dims")},
            {"start_indices_batching_dims", of.at("scatter_indices_batching_dims")},
            {"slice_sizes", to_attribute(windows.sizes())},
            {"mode", of.at("mode")},
            {"fill_value", Attribute(0.0)}};
}

} // namespace

std::optional<ValueId> round_windows(const Candidate &at) {
    if (at.node.op != "convert_element_type") return {};
    const Node *made = at.facts.producer(at.operand());
    const BaseOperator *op = made == nullptr ? nullptr : find_base_operator(made->op);
    if (op == nullptr || op->shape != Shape::scatter || op->fold.empty()) return {};
    const Node scatter = *made; // emit moves nodes
    const Node *widening = at.facts.producer(scatter.operands[0], "convert_element_type");
    if (widening == nullptr) return {};
    const ValueId array = widening->operands[0], indices = scatter.operands[1];
    const Program &program = at.facts.program();
    const Dtype narrow = at.type.dtype, wide = at.operand_type().dtype;
    if (program.type(array).dtype != narrow || !is_float(narrow) || !is_float(wide) || size_of(narrow) >= size_of(wide)) return {};
    const ScatterWindows windows(program, scatter);
    const bool are_disjoint = windows.are_disjoint(), is_argument = at.facts.producer(array) == nullptr;
    if (windows.sizes() == windows.array || !(are_disjoint || (is_argument && windows.are_places(scatter.attributes.at("mode").word))))
        return {};
    const ValueId old = at.emit("gather", {array, indices}, gather_attributes(scatter, windows));
    const ValueId widened = at.emit("convert_element_type", {old}, convert_attributes(wide));
    const ValueId combined =
        are_disjoint ? at.emit(std::string(op->fold), {widened, scatter.operands[2]}, {}) : combine_by_place(at, scatter, windows, widened);
    const ValueId rounded = at.emit("convert_element_type", {combined}, at.node.attributes);
    return at.emit("scatter", {array, indices, rounded}, scatter.attributes);
}

} // namespace scalide

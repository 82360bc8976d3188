#include "transforms/library/operand_scales.h"
#include "transforms/analysis/costs.h"
#include "transforms/analysis/operators.h"
#include <algorithm>

namespace scalide {

namespace {

bool is_f8(Dtype dtype) { return is_float(dtype) && size_of(dtype) == 1; }

/// Iterates over the axes that make up one axis of an operand, from `axis` on. Leading axes have a scale for each index; the others form a
/// block. Returns the elements of a block, or nothing if the axes have another order.
std::optional<Extent> block_of(const Extents &shape, const std::vector<bool> &varies, const Extent &total, size_t &axis) {
    Extent walked(1), block(1);
    while (walked != total || (axis < shape.size() && shape[axis] == Extent(1))) {
        if (axis == shape.size()) return {};
        const bool is_real = shape[axis] != Extent(1);
        if (is_real && varies[axis] && block != Extent(1)) return {};
        if (is_real && !varies[axis]) block = block * shape[axis];
        walked = walked * shape[axis++];
    }
    return block;
}

/// How scales are packed: padded with zeros, split into more axes, and transposed.
struct Packing {
    Extents padded;                  ///< [rows, k] of scales
    Extents split;                   ///< the same elements with more axes
    std::vector<int64_t> order = {}; ///< of the axes of `split`; empty: they are not transposed
};

/// Returns the packing of [rows, k] scales. Returns nothing if a symbolic extent would need padding. NVIDIA's cuBLAS manual describes the
/// tile of vec32_ue8m0 in "1D block scaling factors layout": scale (row, k) of 128 x 4 is at (row % 32) * 16 + row / 32 * 4 + k.
std::optional<Packing> packing(const Extents &blocks, ScaleLayout layout) {
    const Extent &rows = blocks[0], &k = blocks[1];
    const bool is_line = rows == Extent(1) || k == Extent(1);
    if (layout == ScaleLayout::vec128 && !is_line) return Packing{blocks, blocks, {1, 0}};
    if (layout == ScaleLayout::blk128x128) {
        const auto filled = fill(k, 4);
        return filled ? std::optional(Packing{{rows, *filled}, {rows, *filled}}) : std::nullopt;
    }
    if (layout == ScaleLayout::vec32_ue8m0) {
        const auto filled_rows = fill(rows, 128), filled = fill(k, 4);
        if (!filled_rows || !filled) return {};
        return Packing{{*filled_rows, *filled}, {*filled_rows->divide(128), 4, 32, *filled->divide(4), 4}, {0, 3, 2, 1, 4}};
    }
    return Packing{blocks, blocks};
}

Extents permuted(const Extents &shape, const std::vector<int64_t> &order) {
    Extents moved;
    for (const int64_t axis : order) moved.push_back(shape[axis]);
    return moved;
}

/// Returns the bounds of a slice from the first element on, with stride 1.
SliceBounds first_elements(const Extents &shape) { return {Extents(shape.size(), 0), shape, std::vector<int64_t>(shape.size(), 1)}; }

ScaleLayout layout_of(const Program &program, const BlockScales &scales) {
    const Dtype dtype = program.type(scales.value).dtype;
    const struct {
        Dtype dtype;
        Extent rows, k;
        ScaleLayout layout;
    } rows[] = {{Dtype::f32, 1, 128, ScaleLayout::vec128},
                {Dtype::f32, 128, 128, ScaleLayout::blk128x128},
                {Dtype::f8_e8m0fnu, 1, 32, ScaleLayout::vec32_ue8m0}};
    for (const auto &row : rows)
        if (dtype == row.dtype && scales.rows == row.rows && scales.k == row.k) return row.layout;
    return ScaleLayout::none;
}

} // namespace

std::optional<Extent> fill(const Extent &extent, int64_t multiple) {
    if (extent.is_static()) return Extent((extent.value() + multiple - 1) / multiple * multiple);
    return extent.divide(multiple) ? std::optional(extent) : std::nullopt;
}

Extents blocks_of(const BlockScales &scales, const Extent &rows, const Extent &k) {
    return {rows.divide(scales.rows).value(), k.divide(scales.k).value()};
}

std::optional<ScaledOperand> scaled_operand(const Program &program, const std::vector<int> &makers, ValueId operand, const Extent &rows,
                                            const Extent &k) {
    const int mul = makers[array_behind(program, makers, operand)];
    if (mul < 0 || program.nodes[mul].op != "mul" || program.type(program.nodes[mul].results[0]).dtype != Dtype::f32) return {};
    for (const size_t side : {0, 1}) {
        const ValueId codes = array_behind(program, makers, program.nodes[mul].operands[1 - side]);
        const int maker = makers[array_behind(program, makers, program.nodes[mul].operands[side])];
        if (!is_f8(program.type(codes).dtype) || maker < 0 || program.nodes[maker].op != "broadcast_in_dim") continue;
        const Node &broadcast = program.nodes[maker];
        const Extents &from = program.type(broadcast.operands[0]).shape, &shape = program.type(broadcast.results[0]).shape;
        const std::vector<int64_t> axes = broadcast_axes(broadcast);
        std::vector<bool> varies(shape.size());
        for (size_t i = 0; i < axes.size(); ++i) varies[axes[i]] = from[i] != Extent(1);
        size_t axis = 0;
        const auto block_rows = block_of(shape, varies, rows, axis);
        const auto block_k = block_rows ? block_of(shape, varies, k, axis) : std::nullopt;
        if (!block_k || axis != shape.size()) continue;
        return ScaledOperand{codes, {array_behind(program, makers, broadcast.operands[0]), *block_rows, *block_k}, mul};
    }
    return {};
}

std::optional<ScaleLayouts> scale_layouts(const Program &program, const MatmulForm &form) {
    const BlockScales &lhs = form.lhs.scales, &rhs = form.rhs.scales;
    if (lhs.value < 0 && rhs.value < 0) return ScaleLayouts();
    if (lhs.value < 0 || rhs.value < 0) return {};
    const auto is_row = [&](const BlockScales &scales) {
        return program.type(scales.value).dtype == Dtype::f32 && scales.rows == Extent(1) && scales.k == form.k;
    };
    if (is_row(lhs) && is_row(rhs)) return ScaleLayouts{ScaleLayout::outer_vec, ScaleLayout::outer_vec};
    const ScaleLayouts layouts{layout_of(program, lhs), layout_of(program, rhs)};
    if (layouts.lhs == ScaleLayout::none || layouts.rhs == ScaleLayout::none) return {};
    return layouts;
}

ValueId packed_scales(const Program &program, const std::vector<int> &makers, ValueId scales, const Extents &blocks, ScaleLayout layout) {
    const auto packed = packing(blocks, layout);
    if (!packed) return -1;
    ValueId value = scales;
    const auto read_through = [&](const std::string &op, const Attributes &attributes, const Extents &shape) {
        const Node *maker = makers[value] < 0 ? nullptr : &program.nodes[makers[value]];
        if (!maker || maker->op != op || maker->attributes != attributes || program.type(maker->operands[0]).shape != shape) return false;
        value = array_behind(program, makers, maker->operands[0]);
        return true;
    };
    if (packed->padded != blocks && !read_through("slice", slice_attributes(first_elements(blocks)), packed->padded)) return -1;
    const bool is_moved = !packed->order.empty();
    if (is_moved && !read_through("transpose", transpose_attributes(packed->order), permuted(packed->split, packed->order))) return -1;
    return value;
}

bool is_packed(const Extents &blocks, ScaleLayout layout) {
    const auto packed = packing(blocks, layout);
    return packed && packed->padded == blocks && packed->order.empty();
}

bool can_pack(const BlockScales &scales, const Extent &rows, const Extent &k, ScaleLayout layout) {
    return packing(blocks_of(scales, rows, k), layout).has_value();
}

ValueId pack_and_read(ValueId value, const Type &type, const Extents &blocks, ScaleLayout layout, const AppendNode &append) {
    const Packing packed = packing(blocks, layout).value();
    const Dtype dtype = type.dtype;
    const auto reshaped = [&](ValueId from, const Extents &shape) {
        return append("reshape", {from}, reshape_attributes(shape), {dtype, shape});
    };
    const auto transposed = [&](ValueId from, const Extents &shape) { // each order is its own inverse
        return append("transpose", {from}, transpose_attributes(packed.order), {dtype, permuted(shape, packed.order)});
    };
    if (type.shape != blocks) value = reshaped(value, blocks);
    if (packed.padded != blocks) {
        Padding padding{Extents(2, 0), {packed.padded[0] - blocks[0], packed.padded[1] - blocks[1]}, {0, 0}};
        // With saturation, zero becomes e8m0's least number, 2^-127. The constant is f32, because constants have no low-precision dtype.
        const ValueId zero = append("constant", {}, constant_attributes(0, Dtype::f32), {Dtype::f32, {}});
        if (dtype != Dtype::f32) value = append("convert_element_type", {value}, convert_attributes(Dtype::f32), {Dtype::f32, blocks});
        value = append("pad", {value, zero}, pad_attributes(padding), {Dtype::f32, packed.padded});
        Attributes saturating = convert_attributes(dtype);
        saturating["overflow"] = "saturate";
        if (dtype != Dtype::f32) value = append("convert_element_type", {value}, saturating, {dtype, packed.padded});
    }
    Extents stored = packed.split;
    if (stored != packed.padded) value = reshaped(value, stored);
    if (!packed.order.empty()) value = transposed(value, stored), stored = permuted(stored, packed.order);
    value = reshaped(value, stored); // a reshape to its own shape is a copy
    if (!packed.order.empty()) value = transposed(value, stored);
    if (packed.split != packed.padded) value = reshaped(value, packed.padded);
    return packed.padded == blocks ? value : append("slice", {value}, slice_attributes(first_elements(blocks)), {dtype, blocks});
}

} // namespace scalide

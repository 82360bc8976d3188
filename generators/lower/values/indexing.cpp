#include "lower/values/indexing.h"
#include "lower/values/movement.h"
#include "lower/values/windows.h"
#include <cmath>

namespace scalide {
using Halide::Expr;

namespace {

/// Integers have no NaN. The smallest signed or the largest unsigned integer stands for it.
Expr fill(const Node &node, Dtype dtype) {
    const double value = to_number(node.attributes.at("fill_value"));
    if (!std::isnan(value) || is_float(dtype)) return make_constant(dtype, value);
    return make_constant(dtype, is_signed(dtype) ? range_of(dtype).smallest : is_integer(dtype) ? range_of(dtype).largest : 1);
}

/// A slice of an array (operand 0). Its start indices are the operands from number `first` on.
struct Part {
    Index starts; ///< clamped so that the slice lies within the array
    Index room;   ///< not positive: the array is smaller than the slice
};

Part find_part(const Node &node, const Extents &sizes, size_t first, Values &values) {
    const Extents &shape = values.program().type(node.operands[0]).shape;
    Part part;
    for (size_t axis = 0; axis < sizes.size(); axis++) {
        const Expr last = values.extent(shape[axis] - sizes[axis]);
        part.starts.push_back(Halide::clamp(values.at(node.operands[first + axis], {}), 0, last));
        part.room.push_back(Halide::Internal::simplify(last + 1));
    }
    return part;
}

} // namespace

Expr lower_gather(const Node &node, const Index &index, Values &values) {
    const WindowPlace place = Windows(values, node).place(index);
    const Dtype dtype = values.program().type(node.results[0]).dtype;
    return select_inside(place.inside, values.at(node.operands[0], place.index), fill(node, dtype), place.room);
}

Expr lower_dynamic_slice(const Node &node, const Index &index, Values &values) {
    const Part part = find_part(node, values.program().type(node.results[0]).shape, 1, values);
    Index moved;
    for (size_t axis = 0; axis < index.size(); axis++) {
        moved.push_back(index[axis] + part.starts[axis]);
    }
    const Expr value = values.at(node.operands[0], moved);
    return select_inside(Halide::Internal::const_true(), value, Halide::Internal::make_zero(value.type()), part.room);
}

Expr lower_dynamic_update_slice(const Node &node, const Index &index, Values &values) {
    const Extents &sizes = values.program().type(node.operands[1]).shape;
    const Part part = find_part(node, sizes, 2, values);
    Expr inside = Halide::Internal::const_true();
    Index moved, extents;
    for (size_t axis = 0; axis < index.size(); axis++) {
        const Expr place = index[axis] - part.starts[axis];
        extents.push_back(values.extent(sizes[axis]));
        inside = inside && place >= 0 && place < extents.back();
        moved.push_back(Halide::clamp(place, 0, extents.back() - 1));
    }
    return select_inside(inside, values.at(node.operands[1], moved), values.at(node.operands[0], index), extents);
}

} // namespace scalide

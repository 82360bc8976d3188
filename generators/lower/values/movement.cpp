#include "lower/values/movement.h"
#include "lower/formats/formats.h"
#include "lower/shapes/axis_attributes.h"
#include "lower/shapes/axis_links.h"
#include "lower/values/indexing.h"
#include "lower/values/thread_access.h"
#include <bit>

namespace scalide {
using Halide::cast;
using Halide::clamp;
using Halide::Expr;

namespace {

/// A movement node, evaluated at an index of its result.
struct Access {
    const Node &node;
    const Index &index;
    Values &values;

    const Attribute &attribute(const std::string &name) const { return node.attributes.at(name); }
    std::vector<int64_t> integers(const std::string &name) const { return to_integers(attribute(name)); }
    std::vector<Extent> axis_values(const char *name, int absent) const {
        return scalide::axis_values(node, name, Extents(operand_type().shape.size(), Extent(absent)));
    }
    const Type &operand_type(int i = 0) const { return values.program().type(node.operands[i]); }
    const Type &result_type() const { return values.program().type(node.results[0]); }
    Expr operand(const Index &at, int i = 0) const { return values.at(node.operands[i], at); }
};

/// True if `count` elements along x, the first of which is a multiple of `count`, have adjacent indices that begin at a multiple.
bool begins_at_multiples(const Expr &index, int count) {
    const std::string x = axis_vars(1)[0].name();
    const Expr first = Halide::Internal::Variable::make(Halide::Int(32), x) * count;
    const auto at = [&](int lane) { return Halide::Internal::simplify(Halide::Internal::substitute(x, first + lane, index)); };
    const Halide::Internal::ModulusRemainder alignment = Halide::Internal::modulus_remainder(at(0));
    if (alignment.modulus % count != 0 || alignment.remainder % count != 0) return false;
    for (int lane = 1; lane < count; lane++)
        if (!Halide::Internal::is_const(Halide::Internal::simplify(at(lane) - at(0)), lane)) return false;
    return true;
}

/// An index in a part of an axis (always within the part), and the conditions under which it is the right one.
struct PartIndex {
    Expr index, is_after_start, is_before_end;
};

/// Maps an index to a part of an axis that begins at `start` and has `extent` elements. If a group of adjacent elements lies within the
/// part or outside of it, as a whole, the condition and the clamping do not depend on the element. A thread then moves the group at once.
PartIndex find_in_part(const Access &a, const Expr &index, const Extent &start, const Extent &extent) {
    int group = start.is_static() && extent.is_static() ? a.values.most_adjacent() : 1;
    const auto divides = [&] { return start.value() % group == 0 && extent.value() % group == 0 && begins_at_multiples(index, group); };
    while (group > 1 && !divides()) group /= 2;
    const Expr first = a.values.extent(start), place = index - first, size = a.values.extent(extent);
    if (group == 1) return {clamp(place, 0, size - 1), index >= first, place < size};
    const Expr number = place / group, groups = int(extent.value()) / group;
    return {inside_line(place, extent.value(), group), number >= 0, number < groups};
}

Expr broadcast_in_dim(const Access &a) {
    const Extents &from = a.operand_type().shape, &to = a.result_type().shape;
    Index index;
    for (int64_t axis : a.integers("dims")) {
        bool grows = from[index.size()] == Extent(1) && !(to[axis] == Extent(1));
        index.push_back(grows ? Expr(0) : a.index[axis]);
    }
    return a.operand(index);
}

Expr transpose(const Access &a) {
    std::vector<int64_t> permutation = a.integers("permutation");
    Index index(permutation.size());
    for (size_t i = 0; i < permutation.size(); i++) {
        index[permutation[i]] = a.index[i];
    }
    return a.operand(index);
}

Expr rev(const Access &a) {
    Index index = a.index;
    for (int64_t axis : a.integers("dimensions")) {
        index[axis] = a.values.extent(a.result_type().shape[axis]) - 1 - index[axis];
    }
    return a.operand(index);
}

Expr slice(const Access &a) {
    const std::vector<Extent> starts = to_extents(a.attribute("start")), strides = a.axis_values("strides", 1);
    Index index = a.index;
    for (size_t i = 0; i < index.size(); i++) {
        index[i] = index[i] * a.values.extent(strides[i]) + a.values.extent(starts[i]);
    }
    return a.operand(index);
}

Expr pad(const Access &a) {
    const std::vector<Extent> low = a.axis_values("low", 0), high = a.axis_values("high", 0), interior = a.axis_values("interior", 0);
    Index index = a.index, moved;
    Expr inside = Halide::Internal::const_true();
    for (size_t i = 0; i < index.size(); i++) {
        if (low[i] == Extent(0) && high[i] == Extent(0) && interior[i] == Extent(0)) {
            continue;
        }
        moved.push_back(a.values.extent(a.operand_type().shape[i]));
        if (interior[i] == Extent(0)) {
            const PartIndex part = find_in_part(a, index[i], low[i], a.operand_type().shape[i]);
            index[i] = part.index;
            inside = inside && part.is_after_start && part.is_before_end;
            continue;
        }
        PaddedAxis axis = unpad(index[i], a.values.extent(low[i]), a.values.extent(interior[i] + 1), moved.back());
        index[i] = axis.index;
        inside = inside && axis.inside;
    }
    return select_inside(inside, a.operand(index), a.operand({}, 1), moved);
}

Expr concatenate(const Access &a) {
    size_t axis = size_t(a.attribute("dimension").integer.value());
    Expr result;
    Extent end = 0;
    for (int i = 0; i < int(a.node.operands.size()); i++) {
        const Extent &extent = a.operand_type(i).shape[axis];
        Index index = a.index;
        const PartIndex part = find_in_part(a, index[axis], end, extent);
        index[axis] = part.index;
        Expr piece = a.operand(index, i);
        Expr before = result.defined() ? result : Halide::Internal::make_zero(piece.type());
        result = select_inside(part.is_after_start, piece, before, {a.values.extent(extent)});
        end = end + extent;
    }
    return result;
}

/// Axes [from, from_end) of the result's index and axes [to, to_end) of the operand's that have the same elements in row-major order.
struct Segment {
    size_t from, from_end, to, to_end;
};

void reshape_segment(const Access &a, const Segment &s, Index &index) {
    Expr linear = 0;
    for (size_t i = s.from; i < s.from_end; i++) {
        linear = linear * a.values.extent(a.result_type().shape[i]) + a.index[i];
    }
    // Leading axes of extent 1 need no division. Halide does not know that a remainder grows with the index.
    size_t first = s.to;
    for (; first + 1 < s.to_end && a.operand_type().shape[first] == Extent(1); first++) index[first] = 0;
    for (size_t i = s.to_end; i-- > first;) {
        Expr extent = a.values.extent(a.operand_type().shape[i]);
        index[i] = i == first ? linear : linear % extent;
        linear = linear / extent;
    }
}

/// Splits both shapes where the products of the following extents agree. Divisions are then needed only within segments.
Expr reshape(const Access &a) {
    std::vector<Extent> result = suffix_products(a.result_type().shape), operand = suffix_products(a.operand_type().shape);
    Index index(operand.size() - 1);
    size_t from_end = result.size() - 1, to_end = operand.size() - 1;
    for (size_t from = from_end; from-- > 1;) {
        for (size_t to = to_end; to-- > 1;) {
            if (result[from] == operand[to]) {
                reshape_segment(a, {from, from_end, to, to_end}, index);
                from_end = from;
                to_end = to;
                break;
            }
        }
    }
    reshape_segment(a, {0, from_end, 0, to_end}, index);
    return a.operand(index);
}

Expr iota(const Access &a) {
    size_t axis = size_t(a.attribute("dimension").integer.value());
    return cast(storage_type(a.result_type().dtype), a.index[axis]);
}

Expr constant(const Access &a) { return make_constant(a.result_type().dtype, to_number(a.attribute("value"))); }

Expr size(const Access &a) { return cast(storage_type(a.result_type().dtype), a.values.extent(a.attribute("extent").integer)); }

template<Expr (*function)(const Node &, const Index &, Values &)>
Expr by_indices(const Access &a) {
    return function(a.node, a.index, a.values);
}

const std::map<std::string, Expr (*)(const Access &)> lowerings = {
    {"broadcast_in_dim", broadcast_in_dim},
    {"reshape", reshape},
    {"transpose", transpose},
    {"rev", rev},
    {"slice", slice},
    {"pad", pad},
    {"concatenate", concatenate},
    {"gather", by_indices<lower_gather>},
    {"dynamic_slice", by_indices<lower_dynamic_slice>},
    {"dynamic_update_slice", by_indices<lower_dynamic_update_slice>},
    {"iota", iota},
    {"constant", constant},
    {"size", size},
};

} // namespace

Expr select_inside(const Expr &inside, const Expr &value, const Expr &fill, const Index &extents) {
    Expr chosen = Halide::select(inside, value, fill);
    for (const Expr &extent : extents) {
        if (Halide::Internal::is_const_zero(extent)) {
            return fill;
        }
        if (!Halide::Internal::is_const(extent)) {
            chosen = Halide::Internal::Call::make(chosen.type(), Halide::Internal::Call::if_then_else, {extent > 0, chosen, fill},
                                                  Halide::Internal::Call::PureIntrinsic);
        }
    }
    return chosen;
}

PaddedAxis unpad(const Expr &index, const Expr &low, const Expr &step, const Expr &extent) {
    Expr offset = index - low;
    Expr inside = offset >= 0 && offset < extent * step && offset % step == 0;
    return {clamp(offset / step, 0, extent - 1), inside};
}

Expr make_constant(Dtype dtype, double value) {
    if (dtype == Dtype::boolean) {
        return Halide::Internal::make_bool(value != 0);
    }
    if (dtype == Dtype::f64 || is_integer(dtype)) {
        const double number = is_integer(dtype) ? wrap_integer(dtype, value) : value;
        if (dtype == Dtype::i64)
            return number < 0x1p63 ? Halide::Internal::make_const(Halide::Int(64), int64_t(number)) : Halide::Int(64).max();
        return Halide::Internal::make_const(storage_type(dtype), number);
    }
    if (dtype == Dtype::f32) {
        float single = float(value);
        // If a kernel contains both -0 and 0, Halide treats them as one constant. It has no constants for infinities and NaN.
        bool is_ordinary = std::abs(single) <= std::numeric_limits<float>::max() && !(single == 0 && std::signbit(single));
        return is_ordinary ? Expr(single) : Halide::reinterpret<float>(Expr(std::bit_cast<uint32_t>(single)));
    }
    return Halide::Internal::make_const(storage_type(dtype), int64_t(encode(format_of(dtype), value, keeping_infinity(dtype))));
}

Expr lower_movement(const Node &node, const Index &index, Values &values) {
    auto found = lowerings.find(node.op);
    internal_check(found != lowerings.end(), "no lowering of " + node.op + " by index");
    return found->second({node, index, values});
}

} // namespace scalide

#include "rulebook/promotion.h"
#include "rulebook/static_value.h"
#include <algorithm>
#include <numeric>

namespace scalide {

namespace {

using Values = std::span<const StaticValue>;

[[noreturn]] void fail(const std::string &requirement, const std::string &got = "") {
    throw UserError({.requirement = requirement, .got = got});
}

const Type &array(const StaticValue &value) {
    if (value.operand < 0 || value.arrays.empty()) fail("shape functions take the name of an operand", to_string(value.value));
    return value.arrays[0];
}

const std::vector<Attribute> &list(const StaticValue &value) {
    if (value.operand >= 0 || value.value.kind != Attribute::Kind::list) fail("must be a list here", to_string(value.value));
    return value.value.list;
}

std::vector<Extent> extents(const StaticValue &value) {
    std::vector<Extent> extents;
    for (const Attribute &element : list(value)) extents.push_back(to_extent(element));
    return extents;
}

int64_t integer(const Attribute &value) {
    if (value.kind != Attribute::Kind::integer || !value.integer.is_static()) fail("must be an integer here", to_string(value));
    return value.integer.value();
}

std::vector<int64_t> integers(const StaticValue &value) {
    std::vector<int64_t> integers;
    for (const Attribute &element : list(value)) integers.push_back(integer(element));
    return integers;
}

/// An axis, a list of axes, or the side of axis pairs that belongs to operand `side`; counted from the front, within `rank`.
std::vector<int64_t> axes_of(const StaticValue &value, int side, int rank) {
    std::vector<Attribute> chosen = {value.value};
    if (value.value.kind == Attribute::Kind::list) chosen = value.value.list;
    const bool is_paired = chosen.size() == 2 && chosen[0].kind == Attribute::Kind::list;
    if (is_paired) chosen = chosen[std::clamp(side, 0, 1)].list;
    std::vector<int64_t> axes;
    for (const Attribute &element : chosen) {
        const int64_t axis = integer(element);
        if (axis < -rank || axis >= rank) fail("axes must be below the rank " + std::to_string(rank), std::to_string(axis));
        axes.push_back(axis < 0 ? axis + rank : axis);
    }
    return axes;
}

std::vector<int64_t> axes_of(Values v) {
    const int rank = array(v[0]).rank();
    std::vector<int64_t> axes;
    for (const StaticValue &value : v.subspan(1)) std::ranges::copy(axes_of(value, v[0].operand, rank), std::back_inserter(axes));
    return axes;
}

bool contains(const std::vector<int64_t> &axes, int64_t axis) { return std::ranges::find(axes, axis) != axes.end(); }

Attribute extents_of(Values v) {
    Extents extents;
    for (const int64_t axis : axes_of(v)) extents.push_back(array(v[0]).shape[axis]);
    return to_attribute(extents);
}

Attribute size_of_axes(Values v) { return element_count(v.size() == 1 ? array(v[0]).shape : to_extents(extents_of(v))); }

Attribute drop(Values v) {
    const std::vector<int64_t> axes = axes_of(v);
    Extents extents;
    for (int axis = 0; axis < array(v[0]).rank(); axis++)
        if (!contains(axes, axis)) extents.push_back(array(v[0]).shape[axis]);
    return to_attribute(extents);
}

Attribute keep(Values v) {
    Extents extents = array(v[0]).shape;
    for (const int64_t axis : axes_of(v)) extents[axis] = 1;
    return to_attribute(extents);
}

Attribute other_axes(Values v) {
    const std::vector<int64_t> axes = axes_of(v);
    std::vector<int64_t> others;
    for (int axis = 0; axis < array(v[0]).rank(); axis++)
        if (!contains(axes, axis)) others.push_back(axis);
    return to_attribute(others);
}

Attribute dtype_is_float(Values v) {
    const auto dtype = parse_dtype(v[0].value.word);
    return make_flag(dtype && is_float(*dtype));
}

Attribute promoted(Values v) {
    std::vector<Type> types;
    for (const StaticValue &value : v) std::ranges::copy(value.arrays, std::back_inserter(types));
    if (types.empty()) fail("shape functions take the name of an operand");
    return std::string(to_string(promoted_dtype(types)));
}

Attribute picked(Values v) {
    const std::vector<Attribute> &from = list(v[0]);
    std::vector<Attribute> elements;
    for (const int64_t index : integers(v[1])) {
        if (index < 0 || index >= static_cast<int64_t>(from.size()))
            fail("indices must be below " + std::to_string(from.size()), std::to_string(index));
        elements.push_back(from[index]);
    }
    return elements;
}

Attribute permutes(Values v) {
    std::vector<int64_t> axes = integers(v[0]), all(integer(v[1].value));
    std::iota(all.begin(), all.end(), 0);
    return make_flag(std::ranges::is_permutation(axes, all));
}

Attribute increasing(Values v) {
    const std::vector<int64_t> axes = integers(v[0]);
    return make_flag(std::ranges::adjacent_find(axes, std::greater_equal()) == axes.end());
}

Attribute broadcasts(Values v) {
    const std::vector<Extent> from = extents(v[0]), onto = extents(v[1]);
    return make_flag(std::ranges::equal(from, onto, [](const Extent &a, const Extent &b) { return a == b || a == Extent(1); }));
}

/// [] stands for all ones, or all zeros.
std::vector<int64_t> integers_or(const StaticValue &value, size_t count, int64_t fallback) {
    std::vector<int64_t> given = integers(value);
    if (given.empty()) given.assign(count, fallback);
    if (given.size() != count)
        fail("lists must have one entry for each of " + std::to_string(count) + " axes", std::to_string(given.size()));
    return given;
}

Attribute sliced(Values v) {
    const std::vector<Extent> start = extents(v[0]), limit = extents(v[1]);
    if (start.size() != limit.size()) fail("start and limit must have the same length");
    const std::vector<int64_t> strides = integers_or(v[2], start.size(), 1);
    Extents shape;
    for (size_t i = 0; i < start.size(); i++) {
        const Extent extent = limit[i] - start[i];
        if (strides[i] < 1) fail("strides must be at least 1", std::to_string(strides[i]));
        if (strides[i] > 1 && !extent.is_static()) fail("strides above 1 need a fixed extent", to_string(extent));
        shape.push_back(strides[i] == 1 ? extent : Extent((extent.value() + strides[i] - 1) / strides[i]));
    }
    return to_attribute(shape);
}

bool all_less_or_equal(const std::vector<Extent> &a, const std::vector<Extent> &b) {
    return std::ranges::equal(a, b, [](const Extent &x, const Extent &y) { return less_or_equal(x, y).value_or(false); });
}

Attribute within(Values v) {
    const std::vector<Extent> start = extents(v[0]), limit = extents(v[1]);
    return make_flag(all_less_or_equal(std::vector<Extent>(start.size()), start) && all_less_or_equal(start, limit) &&
                     all_less_or_equal(limit, extents(v[2])));
}

Attribute padded(Values v) {
    const Extents &shape = array(v[0]).shape;
    const std::vector<int64_t> low = integers_or(v[1], shape.size(), 0), high = integers_or(v[2], shape.size(), 0);
    const std::vector<int64_t> interior = integers_or(v[3], shape.size(), 0);
    Extents padded;
    for (size_t i = 0; i < shape.size(); i++) {
        if (interior[i] < 0) fail("interior padding must not be negative", std::to_string(interior[i]));
        // between n elements lie n - 1 gaps, none when n is 0
        const Extent gaps = shape[i] == Extent(0) ? Extent(0) : (shape[i] - Extent(1)) * Extent(interior[i]);
        const Extent extent = shape[i] + gaps + Extent(low[i] + high[i]);
        if (extent.is_static() && extent.value() < 0) fail("padding must not leave a negative extent", to_string(extent));
        padded.push_back(extent);
    }
    return to_attribute(padded);
}

Attribute concatenated(Values v) {
    const int64_t axis = axes_of(v).at(0);
    Extents shape = array(v[0]).shape;
    for (size_t i = 1; i < v[0].arrays.size(); i++) {
        if (v[0].arrays[i].rank() != array(v[0]).rank()) fail("operands must have one rank");
        shape[axis] = shape[axis] + v[0].arrays[i].shape[axis];
    }
    return to_attribute(shape);
}

/// All operands have one shape except along the axis.
Attribute joins(Values v) {
    const int64_t axis = axes_of(v).at(0);
    return make_flag(std::ranges::all_of(v[0].arrays, [&](const Type &type) {
        Extents shape = type.shape;
        if (shape.size() == array(v[0]).shape.size()) shape[axis] = array(v[0]).shape[axis];
        return shape == array(v[0]).shape;
    }));
}

// clang-format off
constexpr ShapeFunction table[] = {
    {"shape", "shape(x)", "the extents of x", 1, 1, [](Values v) { return to_attribute(array(v[0]).shape); }},
    {"dtype", "dtype(x)", "the dtype of x", 1, 1, [](Values v) { return Attribute(std::string(to_string(array(v[0]).dtype))); }},
    {"rank", "rank(x)", "the number of axes of x", 1, 1, [](Values v) { return Attribute(array(v[0]).rank()); }},
    {"axes", "axes(x)", "all axes of x: [0, 1, ...]", 1, 1, [](Values v) { return other_axes(v); }},
    {"other_axes", "other_axes(x, axes)", "the axes of x that are not in axes", 2, 2, other_axes},
    {"extents", "extents(x, axes)", "the extents of x along axes; of axis pairs, along the side that belongs to x", 2, 2, extents_of},
    {"size", "size(x), size(x, axes)", "the number of elements of x, or along axes", 1, 2, size_of_axes},
    {"drop", "drop(x, axes, ...)", "the extents of x without axes", 2, -1, drop},
    {"keep", "keep(x, axes)", "the extents of x, 1 along axes", 2, 2, keep},
    {"is_float", "is_float(dtype)", "true for a floating point dtype", 1, 1, dtype_is_float},
    {"promoted", "promoted(x, ...)", "the widest dtype of the operands: bool < i32 < formats < f16, bf16 < f32", 1, -1, promoted},
    {"product", "product(list)", "the product of a list of extents", 1, 1, [](Values v) { return Attribute(element_count(extents(v[0]))); }},
    {"length", "length(list)", "the number of elements of a list", 1, 1, [](Values v) { return Attribute(int64_t(list(v[0]).size())); }},
    {"picked", "picked(list, indices)", "the elements of list at indices", 2, 2, picked},
    {"permutes", "permutes(list, n)", "true when list has each of 0 ... n - 1 once", 2, 2, permutes},
    {"increasing", "increasing(list)", "true when each element is larger than the one before", 1, 1, increasing},
    {"broadcasts", "broadcasts(a, b)", "true when each extent of list a is that of list b or 1", 2, 2, broadcasts},
    {"sliced", "sliced(start, limit, strides)", "the extents of a slice; strides [] = all 1", 3, 3, sliced},
    {"within", "within(start, limit, extents)", "true when 0 <= start <= limit <= extents, one by one", 3, 3, within},
    {"padded", "padded(x, low, high, interior)", "the extents of x after padding; [] = all 0", 4, 4, padded},
    {"concatenated", "concatenated(xs, axis)", "the extents of the arrays of a variadic operand, one after the other", 2, 2, concatenated},
    {"joins", "joins(xs, axis)", "true when they have one shape except along axis", 2, 2, joins},
};
// clang-format on

} // namespace

std::span<const ShapeFunction> shape_functions() { return table; }

const ShapeFunction *find_shape_function(std::string_view name) {
    const auto *row = std::ranges::find(table, name, &ShapeFunction::name);
    return row == std::end(table) ? nullptr : row;
}

} // namespace scalide

#include "rulebook/promotion.h"
#include "rulebook/static_value.h"
#include "rulebook/unplaced.h"
#include "rulebook/window_shapes.h"
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace scalide {

namespace {

using Values = std::span<const StaticValue>;

const Type &array(const StaticValue &value) {
    if (value.operand < 0 || value.arrays.empty())
        fail_unplaced("the argument of a shape function must be the name of an operand", to_string(value.value));
    return value.arrays[0];
}

const std::vector<Attribute> &list(const StaticValue &value) {
    if (value.operand >= 0 || value.value.kind != Attribute::Kind::list) fail_unplaced("must be a list here", to_string(value.value));
    return value.value.list;
}

std::vector<Extent> extents(const StaticValue &value) {
    std::vector<Extent> extents;
    for (const Attribute &element : list(value)) extents.push_back(to_extent(element));
    return extents;
}

int64_t integer(const Attribute &value) {
    if (value.kind != Attribute::Kind::integer || !value.integer.is_static()) fail_unplaced("must be an integer here", to_string(value));
    return value.integer.value();
}

std::vector<int64_t> integers(const StaticValue &value) {
    std::vector<int64_t> integers;
    for (const Attribute &element : list(value)) integers.push_back(integer(element));
    return integers;
}

/// Returns axes counted from the front, checked against `rank`. `value` is an axis, a list of axes, or axis pairs, of which it takes the
/// part for operand `side`.
std::vector<int64_t> axes_of(const StaticValue &value, int side, int rank) {
    const bool is_list = value.value.kind == Attribute::Kind::list;
    const std::vector<Attribute> given = is_list ? value.value.list : std::vector<Attribute>{value.value};
    const bool is_paired = given.size() == 2 && given[0].kind == Attribute::Kind::list;
    std::vector<int64_t> axes;
    for (const Attribute &element : is_paired ? given[std::clamp(side, 0, 1)].list : given) {
        const int64_t axis = integer(element);
        if (axis < -rank || axis >= rank) fail_unplaced("axes must be less than the rank " + std::to_string(rank), std::to_string(axis));
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

Attribute axes(Values v) { return v.size() == 1 ? other_axes(v) : to_attribute(axes_of(v)); }

Attribute dtype_is_float(Values v) {
    const auto dtype = parse_dtype(v[0].value.word);
    return make_flag(dtype && is_float(*dtype));
}

Dtype dtype_of(const StaticValue &value) {
    const auto dtype = parse_dtype(value.value.word);
    if (!dtype) fail_unplaced("must be a dtype", to_string(value.value));
    return *dtype;
}

Attribute bits_of(Values v) { return Attribute(int64_t(scalide::bits_of(dtype_of(v[0])))); }

const FormatSpec &format(const StaticValue &value) {
    const auto dtype = parse_dtype(value.value.word);
    if (!dtype || !is_float(*dtype) || *dtype == Dtype::f64) fail_unplaced("must be a float dtype", to_string(value.value));
    return format_of(*dtype);
}

Attribute mantissa_bits_of(Values v) { return Attribute(int64_t(format(v[0]).mantissa_bits)); }

Attribute smallest_normal_of(Values v) { return Attribute(std::exp2(1 - format(v[0]).bias)); }

Attribute largest_number_of(Values v) { return Attribute(decode(format(v[0]), format(v[0]).max_code)); }

Attribute lowest_of(Values v) {
    const Dtype dtype = dtype_of(v[0]);
    return is_integer(dtype) ? Attribute(int64_t(range_of(dtype).smallest)) : Attribute(-std::numeric_limits<double>::infinity());
}

Attribute promoted(Values v) {
    std::vector<Type> types;
    for (const StaticValue &value : v) std::ranges::copy(value.arrays, std::back_inserter(types));
    if (types.empty()) fail_unplaced("the argument of a shape function must be the name of an operand");
    return std::string(to_string(promoted_dtype(types)));
}

/// Returns axes counted from the front. Each must be below `rank` and occur once.
std::vector<int64_t> distinct_axes(const StaticValue &value, int64_t rank) {
    std::vector<int64_t> axes = axes_of(value, 0, static_cast<int>(rank)), sorted = axes;
    std::ranges::sort(sorted);
    if (std::ranges::adjacent_find(sorted) != sorted.end()) fail_unplaced("axes must be different", to_string(value.value));
    return axes;
}

Attribute permuted(Values v) {
    const Extents &shape = array(v[0]).shape;
    const std::vector<int64_t> axes = distinct_axes(v[1], std::ssize(shape));
    if (axes.size() != shape.size())
        fail_unplaced("a permutation must name each of " + std::to_string(shape.size()) + " axes once", to_string(v[1].value));
    Extents extents;
    for (const int64_t axis : axes) extents.push_back(shape[axis]);
    return to_attribute(extents);
}

Attribute inserted(Values v) {
    const Extents &shape = array(v[0]).shape;
    const int64_t rank = std::ssize(shape) + std::ssize(list(v[1]));
    const std::vector<int64_t> places = distinct_axes(v[1], rank);
    Extents extents;
    auto next = shape.begin();
    for (int64_t axis = 0; axis < rank; axis++) extents.push_back(contains(places, axis) ? Extent(1) : *next++);
    return to_attribute(extents);
}

Attribute fits(Values v) {
    const std::vector<Extent> from = extents(v[0]), onto = extents(v[1]);
    const std::vector<int64_t> dims = distinct_axes(v[2], std::ssize(onto));
    if (dims.size() != from.size()) return make_flag(false);
    for (size_t i = 0; i < dims.size(); i++)
        if (!(from[i] == onto[dims[i]] || from[i] == Extent(1))) return make_flag(false);
    return make_flag(std::ranges::is_sorted(dims));
}

Attribute range(Values v) {
    const int64_t first = v.size() == 1 ? 0 : integer(v[0].value);
    const Extent count = Extent(integer(v.back().value)) - Extent(first);
    std::vector<int64_t> numbers(std::clamp<int64_t>(count.value(), 0, 64));
    std::iota(numbers.begin(), numbers.end(), first);
    return to_attribute(numbers);
}

/// Returns an index into a list, counted from the front.
size_t place_in(const Attribute &place, size_t length) {
    const int64_t index = integer(place);
    if (index < 0 || index >= static_cast<int64_t>(length))
        fail_unplaced("positions must be less than the length of the list, " + std::to_string(length), std::to_string(index));
    return static_cast<size_t>(index);
}

Attribute repeated(Values v) { return std::vector<Attribute>(std::clamp<int64_t>(integer(v[1].value), 0, 64), v[0].value); }

Attribute with_element(Values v) {
    std::vector<Attribute> changed = list(v[0]);
    changed[place_in(v[1].value, changed.size())] = v[2].value;
    return changed;
}

Attribute picked(Values v) {
    std::vector<Attribute> elements;
    for (const Attribute &place : list(v[1])) elements.push_back(list(v[0])[place_in(place, list(v[0]).size())]);
    return elements;
}

Attribute merged(Values v) {
    const std::vector<Attribute> &chosen = list(v[0]), &rest = list(v[2]);
    const std::vector<int64_t> places = integers(v[1]);
    if (places.size() != chosen.size())
        fail_unplaced("the number of positions must be " + std::to_string(chosen.size()), to_string(v[1].value));
    std::vector<Attribute> all = rest;
    for (size_t i = 0; i < places.size(); i++) {
        const bool ascends = i == 0 || places[i - 1] < places[i];
        if (!ascends || places[i] < 0 || places[i] > std::ssize(all))
            fail_unplaced("positions must be ascending and within the result", to_string(v[1].value));
        all.insert(all.begin() + places[i], chosen[i]);
    }
    return all;
}

Attribute within(Values v) {
    const std::vector<Extent> given = extents(v[0]), limits = extents(v[1]);
    if (given.size() != limits.size()) return make_flag(false);
    for (size_t i = 0; i < given.size(); i++)
        if (!less_or_equal(given[i], limits[i]).value_or(true)) return make_flag(false);
    return make_flag(true);
}

Attribute ranks(Values v) {
    std::vector<int64_t> ranks;
    for (const Type &type : v[0].arrays) ranks.push_back(type.rank());
    return to_attribute(ranks);
}

Attribute same_shapes(Values v) {
    const Extents &shape = array(v[0]).shape;
    return make_flag(std::ranges::all_of(v[0].arrays, [&](const Type &type) { return type.shape == shape; }));
}

/// An empty list means that every entry is `fallback`.
std::vector<int64_t> integers_or(const StaticValue &value, size_t count, int64_t fallback) {
    std::vector<int64_t> given = integers(value);
    if (given.empty()) given.assign(count, fallback);
    if (given.size() != count)
        fail_unplaced("the list must have one entry for each of " + std::to_string(count) + " axes", std::to_string(given.size()));
    return given;
}

/// Returns ceil(a / b) for b > 0 without a sum that could overflow 64 bits.
int64_t divide_up(int64_t a, int64_t b) { return a / b + (a % b > 0); }

bool is_within(const Extent &low, const Extent &high) { return less_or_equal(low, high).value_or(false); }

Attribute sliced(Values v) {
    const Extents &from = array(v[0]).shape;
    const std::vector<Extent> start = extents(v[1]), limit = extents(v[2]);
    if (start.size() != from.size() || limit.size() != from.size()) fail_unplaced("start and limit must have one entry for each axis");
    const std::vector<int64_t> strides = integers_or(v[3], from.size(), 1);
    Extents shape;
    for (size_t i = 0; i < from.size(); i++) {
        const bool may_reach = less_or_equal(limit[i], from[i]).value_or(true); // require_elements() bounds the symbols
        if (!is_within(0, start[i]) || !is_within(start[i], limit[i]) || !may_reach)
            fail_unplaced("must have 0 <= start <= limit <= extent",
                          to_string(start[i]) + ", " + to_string(limit[i]) + ", " + to_string(from[i]));
        const Extent extent = limit[i] - start[i];
        if (strides[i] < 1) fail_unplaced("strides must be at least 1", std::to_string(strides[i]));
        if (strides[i] > 1 && !extent.is_static()) fail_unplaced("strides above 1 need a fixed extent", to_string(extent));
        shape.push_back(strides[i] == 1 ? extent : Extent(divide_up(extent.value(), strides[i])));
    }
    return to_attribute(shape);
}

Attribute padded(Values v) {
    const Extents &shape = array(v[0]).shape;
    const std::vector<int64_t> low = integers_or(v[1], shape.size(), 0), high = integers_or(v[2], shape.size(), 0);
    const std::vector<int64_t> interior = integers_or(v[3], shape.size(), 0);
    Extents padded;
    for (size_t i = 0; i < shape.size(); i++) {
        if (interior[i] < 0) fail_unplaced("interior padding must not be negative", std::to_string(interior[i]));
        // n elements have n - 1 gaps between them, or none if n is 0
        const Extent gaps = shape[i] == Extent(0) ? Extent(0) : (shape[i] - Extent(1)) * Extent(interior[i]);
        const Extent extent = shape[i] + gaps + Extent(low[i]) + Extent(high[i]);
        if (extent.is_static() && extent.value() < 0) fail_unplaced("padding must not leave a negative extent", to_string(extent));
        padded.push_back(extent);
    }
    return to_attribute(padded);
}

/// Returns the shape of x after one axis was split in two. The given extent is the number of parts (`is_count`) or the size of each part.
Attribute axis_in_two(Values v, bool is_count) {
    Extents shape = array(v[0]).shape;
    const int64_t axis = axes_of(v[1], 0, array(v[0]).rank()).at(0);
    const Extent given = to_extent(v[2].value);
    const auto rest = given.is_static() && given.value() < 1 ? std::nullopt : shape[axis].divide(given);
    if (!rest)
        fail_unplaced("the extent must be divisible by the number of parts or the block size",
                      to_string(shape[axis]) + " and " + to_string(given));
    shape[axis] = is_count ? *rest : given;
    shape.insert(shape.begin() + axis, is_count ? given : *rest);
    return to_attribute(shape);
}

Attribute split(Values v) { return axis_in_two(v, true); }

Attribute blocked(Values v) { return axis_in_two(v, false); }

Attribute filled(Values v) {
    const Extent extent = to_extent(v[0].value);
    const int64_t multiple = integer(v[1].value);
    if (multiple < 1) fail_unplaced("the multiple must be at least 1", std::to_string(multiple));
    if (extent.is_static()) return Extent(std::max<int64_t>(1, divide_up(extent.value(), multiple))) * Extent(multiple);
    const std::string example = std::to_string(multiple) + "*b";
    if (!extent.divide(multiple))
        fail_unplaced("blocks of " + std::to_string(multiple) + " along this axis: the extent must be a number or a multiple such as " +
                          example,
                      to_string(extent), "Declare the extent as a multiple, such as " + example);
    return Attribute(extent);
}

Attribute rest(Values v) {
    const std::vector<Attribute> &all = list(v[0]);
    if (all.empty()) fail_unplaced("must be a list of at least one element", "[]");
    return std::vector<Attribute>(all.begin() + 1, all.end());
}

Attribute concatenated(Values v) {
    const int64_t axis = axes_of(v).at(0);
    Extents shape = array(v[0]).shape;
    for (size_t i = 1; i < v[0].arrays.size(); i++) {
        Extents other = v[0].arrays[i].shape;
        if (other.size() != shape.size()) fail_unplaced("operands must have the same rank");
        shape[axis] = shape[axis] + other[axis];
        other[axis] = shape[axis];
        if (other != shape)
            fail_unplaced("operands must have the same shape except along the axis",
                          to_string(v[0].arrays[0]) + " and " + to_string(v[0].arrays[i]));
    }
    return to_attribute(shape);
}

// clang-format off
constexpr ShapeFunction shape_function_table[] = {
    {"shape", "shape(x)", "the extents of x", 1, 1, [](Values v) { return to_attribute(array(v[0]).shape); }},
    {"dtype", "dtype(x)", "the dtype of x", 1, 1, [](Values v) { return Attribute(std::string(to_string(array(v[0]).dtype))); }},
    {"rank", "rank(x)", "the number of axes of x", 1, 1, [](Values v) { return Attribute(array(v[0]).rank()); }},
    {"axes", "axes(x), axes(x, pairs)", "all axes of x, [0, 1, ...]; with axis pairs, the axes that belong to x", 1, 2, axes},
    {"other_axes", "other_axes(x, axes, ...)", "the axes of x that are not in axes", 2, -1, other_axes},
    {"extents", "extents(x, axes)", "the extents of x along axes; with axis pairs, along the axes that belong to x", 2, 2, extents_of},
    {"size", "size(x), size(x, axes)", "the number of elements of x; with axes, the product of these extents", 1, 2, size_of_axes},
    {"drop", "drop(x, axes, ...)", "the extents of x without these axes", 2, -1, drop},
    {"keep", "keep(x, axes)", "the extents of x, with 1 for these axes", 2, 2, keep},
    {"is_float", "is_float(dtype)", "true for a float dtype", 1, 1, dtype_is_float},
    {"bits", "bits(dtype)", "the number of bits of an element in memory", 1, 1, bits_of},
    {"mantissa_bits", "mantissa_bits(dtype)", "the number of mantissa bits of a float dtype, without the implicit one", 1, 1, mantissa_bits_of},
    {"smallest_normal", "smallest_normal(dtype)", "the smallest normal number of a float dtype", 1, 1, smallest_normal_of},
    {"largest_number", "largest_number(dtype)", "the largest number of a float dtype", 1, 1, largest_number_of},
    {"lowest", "lowest(dtype)", "the smallest value of a dtype; for a float dtype -inf", 1, 1, lowest_of},
    {"promoted", "promoted(x, ...)", "the widest dtype of the operands, in the order bool < integers < 8-bit floats < f16, bf16 < f32", 1, -1, promoted},
    {"count", "count(list)", "the product of a list of extents", 1, 1, [](Values v) { return Attribute(element_count(extents(v[0]))); }},
    {"length", "length(list)", "the number of elements of a list", 1, 1, [](Values v) { return Attribute(int64_t(list(v[0]).size())); }},
    {"rest", "rest(list)", "the list without its first element", 1, 1, rest},
    {"range", "range(n), range(a, n)", "[0, 1, ..., n - 1], or [a, ..., n - 1]", 1, 2, range},
    {"repeated", "repeated(value, n)", "a list of n copies of the value", 2, 2, repeated},
    {"replaced", "replaced(list, index, value)", "the list with the value at this index", 3, 3, with_element},
    {"picked", "picked(list, indices)", "the elements of the list at these indices", 2, 2, picked},
    {"merged", "merged(list, indices, rest)", "a longer list: the elements of list at these ascending indices, the elements of rest at the others", 3, 3, merged},
    {"within", "within(list, limits)", "true unless an extent exceeds its limit for all values of the symbols; false if the lengths differ", 2, 2, within},
    {"ranks", "ranks(xs)", "the ranks of the arrays of a variadic operand", 1, 1, ranks},
    {"same_shapes", "same_shapes(xs)", "true if the arrays of a variadic operand have the same shape", 1, 1, same_shapes},
    {"permuted", "permuted(x, axes)", "the extents of x in the order of axes, a list that names each axis once", 2, 2, permuted},
    {"inserted", "inserted(x, axes)", "the extents of x with extents of 1 inserted; axes are their positions in the result", 2, 2, inserted},
    {"split", "split(x, axis, parts)", "the extents of x with one axis split in two: parts, then the extent of one part", 3, 3, split},
    {"blocked", "blocked(x, axis, block)", "the extents of x with one axis split in two: the number of blocks, then block", 3, 3, blocked},
    {"filled", "filled(n, multiple)", "n rounded up to a multiple, at least one multiple; an n with symbols must be a multiple already", 2, 2, filled},
    {"fits", "fits(list, shape, dims)", "true if dims increase and each extent of list is 1 or equals the extent of shape at its axis in dims", 3, 3, fits},
    {"sliced", "sliced(x, start, limit, strides)", "the extents of a slice of x; strides [] means all 1", 4, 4, sliced},
    {"padded", "padded(x, low, high, interior)", "the extents of x after padding; [] means all 0", 4, 4, padded},
    {"concatenated", "concatenated(xs, axis)", "the extents of the arrays of a variadic operand, joined along the axis", 2, 2, concatenated},
    {"windowed", "windowed(x, window, strides, low, high, base_dilation, window_dilation)", "the number of windows along each axis of x", 7, 7, windowed},
    {"windows_meet", "windows_meet(x, window, ..., window_dilation)", "true if each window, at each position, contains an element of x", 7, 7, windows_meet},
    {"convolved", "convolved(lhs, rhs, strides, ..., batch_group_count)", "the extents of a convolution result; the arguments are the attributes of conv_general_dilated in their order", 12, 12, convolved},
    {"padding_low", "padding_low(padding, extents, window, strides)", "the padding before each axis, for same, valid or pairs [low, high]", 4, 4, padding_low},
    {"padding_high", "padding_high(padding, extents, window, strides)", "the padding after each axis, for same, valid or pairs [low, high]", 4, 4, padding_high},
    {"transposed_padding_low", "transposed_padding_low(padding, window, strides)", "the padding before each axis of a transposed convolution", 3, 3, transposed_padding_low},
    {"transposed_padding_high", "transposed_padding_high(padding, window, strides)", "the padding after each axis of a transposed convolution", 3, 3, transposed_padding_high},
};
// clang-format on

} // namespace

std::span<const ShapeFunction> shape_functions() { return shape_function_table; }

const ShapeFunction *find_shape_function(std::string_view name) {
    const auto *row = std::ranges::find(shape_function_table, name, &ShapeFunction::name);
    return row == std::end(shape_function_table) ? nullptr : row;
}

} // namespace scalide

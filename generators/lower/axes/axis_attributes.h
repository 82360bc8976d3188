#pragma once
#include "ir/program.h"

namespace scalide {

/// What an attribute of a base operator says of axes. The names are those of the rule files, where one name means one thing:
/// tests/unit/emit/axis_attributes.cpp compares this table with the types that rules give their attributes.
struct AxisAttribute {
    enum class Kind {
        axis,        ///< one axis of the operand (of the result, without one): elements are made or ordered along it
        axes,        ///< some axes of the operand: folded by a reduction, turned around by `rev`
        permutation, ///< axis i of the result is this axis of the operand
        embedding,   ///< axis i of the operand is this axis of the result
        entries,     ///< an entry an axis of the operand; left out or empty: all neutral
    };
    enum class Neutral { zero, one, extent }; ///< the entry of an axis with which nothing happens

    std::string_view name;
    Kind kind;
    Neutral neutral = Neutral::zero;
};

/// The row of an attribute; nullptr when it does not speak of axes. Not for operators that keep their axes apart.
const AxisAttribute *find_axis_attribute(std::string_view name);

/// True when every axis of its operands and results has a part of its own: products, windows of several operands, indices of elements.
bool keeps_axes_apart(const Node &node);

/// The axes of an operand of this shape that must stay axes of their own: named by an attribute, or with an entry that is not neutral.
/// Those that a reduction folds are not among them, unless their places matter (argmax).
std::vector<int64_t> touched_axes(const Node &node, const Extents &shape);

/// An attribute that has an entry an axis; `absent` when it is absent or empty.
std::vector<Extent> axis_values(const Node &node, const char *name, const Extents &absent);

} // namespace scalide

#pragma once
#include "ir/program.h"

namespace scalide {

/// Describes how an attribute of a base operator refers to axes. Names are those of the rule files, in which a name has one meaning.
/// tests/unit/emit/axis_attributes.cpp compares this table with the types of attributes in rules.
struct AxisAttribute {
    enum class Kind {
        axis,        ///< one axis of the operand (of the result, if there is no operand), along which elements are generated or ordered
        axes,        ///< some axes of the operand, which a reduction reduces or `rev` reverses
        permutation, ///< axis i of the result is this axis of the operand
        embedding,   ///< axis i of the operand is this axis of the result
        entries,     ///< one entry for each axis of the operand; missing or empty: all neutral
    };
    enum class Neutral { zero, one, extent }; ///< an axis with this entry is not changed

    std::string_view name;
    Kind kind;
    Neutral neutral = Neutral::zero;
};

/// Returns the row of an attribute, or nullptr if it does not refer to axes. Not for operators for which keeps_axes_apart() is true.
const AxisAttribute *find_axis_attribute(std::string_view name);

/// True if the axes of operands and results have different roles: matmuls, convolutions, operators with index operands.
bool keeps_axes_apart(const Node &node);

/// Returns the axes of an operand of this shape that must not be merged: axes named by an attribute, or with an entry that is not neutral.
/// Reduced axes may be merged, unless the reduction returns indices (argmax).
std::vector<int64_t> touched_axes(const Node &node, const Extents &shape);

/// Returns an attribute with one entry for each axis, or `absent` if it is missing or empty.
std::vector<Extent> axis_values(const Node &node, const char *name, const Extents &absent);

} // namespace scalide

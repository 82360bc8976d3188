#pragma once
#include "ir/type.h"
#include <vector>

namespace scalide {

/// How a matmul or a convolution arranges its right operand in memory: in panels of adjacent columns. The axes of the array of panels are,
/// the outermost first: `axes` outside the panels, panels, the other `axes`, of which the last is divided into groups, the columns of a
/// panel, the elements of a group. Columns and elements beyond the operand are zeros.
struct PanelLayout {
    Dtype element = Dtype::f32; ///< holds every element of the operand exactly
    int64_t width = 1;          ///< columns of a panel
    int64_t group = 1;          ///< adjacent elements that one instruction multiplies
    int64_t columns = 0;        ///< the axis of the operand that counts columns
    std::vector<int64_t> axes;  ///< the other axes of the operand, the outermost first
    size_t outside = 0;         ///< how many of `axes` are outside the panels
    int64_t step = 1;           ///< the number of groups is a multiple of this
};

/// The attribute of a kernel that reads its right operand from an argument in panels: the shape of this argument.
inline constexpr const char *panels_attribute = "panels";

} // namespace scalide

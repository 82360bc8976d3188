#pragma once
#include "transforms/fusion/groups/groups.h"

namespace scalide {

/// True if the node takes the maximum or minimum over all elements of an array with at least two axes (axes of extent 1 do not count).
bool is_largest_of_all(const Program &program, const Node &node);

struct Stores {
    /// Reduce a maximum or minimum over all elements in two steps: first within each row, then over the rows. The map that stores the array
    /// and the first step then become one kernel of kind `row`. No bit of the result changes.
    bool rows_first = false;
    /// Store f32 arrays in this format if one kernel writes them and a matmul of another kernel reads them. The matmul rounds them anyway.
    /// The array may reach the matmul directly, or through movement, conversions and its scale. All other arrays stay f32. Some operands of
    /// matmuls stay f32 too:
    /// - An array that arithmetic of the forward pass in another kernel also reads: the state of an unrolled recurrence, a residual stream.
    ///   Its rounding errors would add up from step to step.
    /// - Results of reductions and scans, results of the program, and arrays from which a result is computed element by element (a new
    ///   state).
    /// - Arrays that are compared for equality or that decide an order (argmax, argmin, sorting).
    /// - Operands of matmuls with the attribute `wide`, and arrays that a library reads or writes.
    ///
    /// A kernel never rounds values that it computes itself.
    std::optional<Dtype> intermediates = {};
};

/// Rewrites the program so that kernels store less, or store fewer bits. `groups` shows what kernels would store and read again. The caller
/// must form kernels again afterwards. Until then, the program's attribute `repeated` names the values that kernels recompute.
Program place_stores(const Groups &groups, const Stores &stores);

inline constexpr const char *repeated_attribute = "repeated";

/// Returns the nodes whose results the attribute `repeated` names.
std::set<int> repeated_nodes(const Program &program);

} // namespace scalide

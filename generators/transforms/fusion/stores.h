#pragma once
#include "transforms/fusion/groups/groups.h"

namespace scalide {

/// The largest or smallest of all elements of an array of two axes or more.
bool is_largest_of_all(const Program &program, const Node &node);

struct Stores {
    /// The largest or smallest of all elements that a map stores is taken from the largest of its rows, so that the map and the reduction
    /// are one kernel of kind `row`. No bit changes.
    bool rows_first = false;
    /// Arrays of f32 that one kernel writes and a product of another kernel reads are stored in this format: the product rounds them
    /// anyway. The array is an operand of the product, directly or through movement, conversions and its scale. All other arrays stay f32.
    /// Among the operands these stay f32 too:
    ///   - a carry, which arithmetic of the forward pass in another kernel reads besides (the state of an unrolled recurrence, a residual
    ///     stream): its rounding errors would add up from step to step
    ///   - what kernels reduce or scan to, results of the program, and what a result (a new state) is made of element by element
    ///   - what is compared for equality or decides an order (argmax, argmin, sorting)
    ///   - operands of products that are `wide`, and what a library reads or writes
    /// What a kernel reads of its own values is never rounded.
    std::optional<Dtype> intermediates = {};
};

/// A program with other stores, where these groups show that kernels would store and read again. Kernels are formed anew afterwards; what
/// they repeat now stands in the program's attribute `repeated`, by name, until they are formed.
Program place_stores(const Groups &groups, const Stores &stores);

inline constexpr const char *repeated_attribute = "repeated";

/// The nodes that this attribute names.
std::set<int> repeated_nodes(const Program &program);

} // namespace scalide

#pragma once
#include "transforms/fusion/groups/groups.h"

namespace scalide {

/// The largest or smallest of all elements of an array of two axes or more.
bool is_largest_of_all(const Program &program, const Node &node);

struct Stores {
    /// The largest or smallest of all elements that a map stores is taken from the largest of its rows, so that the map and the reduction
    /// are one kernel of kind `row`. No bit changes.
    bool rows_first = false;
    /// Arrays of f32 that one kernel writes and another reads are stored in this format. What a kernel reads of its own values stays f32,
    /// and so do results of the program, what a row or column is reduced to, what a result (a new state) is made of element by element,
    /// and what a library reads or writes.
    std::optional<Dtype> intermediates = {};
};

/// A program with other stores, where these groups show that kernels would store and read again. Kernels are formed anew afterwards; what
/// they repeat now stands in the program's attribute `repeated`, by name, until they are formed.
Program place_stores(const Groups &groups, const Stores &stores);

inline constexpr const char *repeated_attribute = "repeated";

/// The nodes that this attribute names.
std::set<int> repeated_nodes(const Program &program);

} // namespace scalide

#pragma once
#include "transforms/fuse_groups.h"

namespace scalide {

/// Rewrites of a program for what kernels would store and read again, as these groups show it. Kernels are formed anew afterwards.

/// The largest or smallest of all elements of an array of two axes or more.
bool is_largest_of_all(const Program &program, const Node &node);

/// The largest or smallest of all elements that a map stores is taken from the largest of its rows, so that the map and the reduction are
/// one kernel of kind `row`. No bit changes.
Program reduce_rows_first(const Groups &groups);

/// Arrays of f32 that one kernel writes and another reads are stored in `dtype`. What a kernel reads of its own values stays f32, and so
/// do results of the program, what a row or column is reduced to, what a result (a new state) is made of element by element, and what a
/// library reads or writes.
Program narrow_intermediates(const Groups &groups, Dtype dtype);

} // namespace scalide

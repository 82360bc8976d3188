#pragma once
#include "transforms/fusion/groups/groups.h"

namespace scalide {

/// Row kernels take sums over their rows along (lower/rows/row_sums.h) where they read what the sums read, or make it, and where that is
/// worthwhile: the gradients of a norm's gain and bias then cost no pass over memory of their own. Rows have to be so many that blocks of
/// them fill a machine, and so long that a block of threads makes one; both have to be known. The setting `sums: with_rows` of a program
/// asks for it whatever the shapes.
void merge_sums(Groups &groups);

} // namespace scalide

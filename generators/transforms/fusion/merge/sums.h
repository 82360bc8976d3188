#pragma once
#include "transforms/fusion/groups/groups.h"

namespace scalide {

/// Merges sums over rows into row kernels (lower/rows/row_sums.h) that read or compute the same array. The gradients of a norm's gain and
/// bias then need no pass over memory of their own. This is done if it pays: there must be enough rows for blocks of them to fill a GPU,
/// and each row must be long enough for a block of threads. Both extents must be static. The program's setting `sums: with_rows` requests
/// it for any shape.
void merge_sums(Groups &groups);

} // namespace scalide

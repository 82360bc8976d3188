#pragma once
#include <Halide.h>

namespace scalide {

/// On a GPU, keeps the elements of `running` (lower/rows/row_sums.h) that a thread uses in registers during the loop over a block's rows.
/// They are written to memory after that loop. Without this, the sums are an array in device memory: Halide computes them together with
/// other results, which it can do only at the outermost level. If the elements of a thread depend on further loops (many columns, or an
/// unknown number), the sums stay in memory.
void keep_running_sums(Halide::Pipeline &pipeline, const Halide::Func &running);

} // namespace scalide

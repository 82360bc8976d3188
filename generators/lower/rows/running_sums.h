#pragma once
#include <Halide.h>

namespace scalide {

/// On a GPU, keeps what each thread reads and writes of `running` (lower/rows/row_sums.h) in registers while the rows of a block pass by,
/// and writes it behind that loop. Halide makes these sums beside other results, which it does at the outermost level alone, and there they
/// are an array in device memory. Where a thread's place in that array depends on more loops (columns that are many, or not known), the
/// sums stay there.
void keep_running_sums(Halide::Pipeline &pipeline, const Halide::Func &running);

} // namespace scalide

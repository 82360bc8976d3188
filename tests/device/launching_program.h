#pragma once
#include "scalide/plan.h"

namespace scalide::test {

/// A plan by hand whose kernels' host code launches `rows.3` and `sum.4` on CUDA: x f32[b, 4], y f32[b] -> loss f32[]. `rows.3` has
/// shared memory and writes what `sum.4` reads, in memory that Halide's host code asks for; `sum.4` reads a constant and a size.
const scalide_program *launching_program();

/// What `rows.3` asks for.
constexpr int default_launching_shared_bytes = 64 << 10;
extern int launching_shared_bytes;
/// How often host code has run since the start.
extern int host_code_runs;

} // namespace scalide::test

#pragma once
#include "scalide/plan.h"

namespace scalide::test {

/// A hand-written plan whose host code launches the CUDA kernels `rows.3` and `sum.4`: x f32[b, 4], y f32[b] -> loss f32[]. `rows.3` uses
/// shared memory. It writes the input of `sum.4` into memory that Halide's host code allocates. `sum.4` reads a buffer in the arena and one
/// in the scalar table.
const scalide_program *launching_program();

/// Bytes of shared memory that `rows.3` requests.
constexpr int default_launching_shared_bytes = 64 << 10;
extern int launching_shared_bytes;
/// How often host code has run since the start.
extern int host_code_runs;

} // namespace scalide::test

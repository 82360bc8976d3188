#pragma once
#include "lower/kinds.h"

namespace scalide {

/// Adds an output: these results of the kernel program, which have one shape, as one Func over `vars` (first axis first). A result that
/// overwrites an inout argument makes the Func an update of its own buffer, where these results read the argument; nothing else can read
/// it.
void add_output(Lowering &lowering, const std::vector<int> &results, const std::vector<Halide::Var> &vars);

/// The results of the program by shape, shapes in order of first appearance.
std::vector<std::vector<int>> results_by_shape(const Program &program);
/// Adds every result of the program: one output a shape.
void add_outputs_by_shape(Lowering &lowering);

} // namespace scalide

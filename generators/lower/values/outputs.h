#pragma once
#include "lower/values/kinds.h"

namespace scalide {

/// Concatenations along one axis with equal parts.
struct Joins {
    std::vector<ValueId> values;
    std::vector<Extent> parts; ///< their extents along the axis
    int axis = 0;
};

/// Adds an output: one Func over `vars` (first axis first) for results of one shape. If a result overwrites an inout argument, the Func
/// becomes an update of its own buffer, and these results read the argument there. Nothing else may read that argument.
///
/// If there are joins, the Func has one update for each part, and each result reads the joins at its own index alone.
void add_output(Lowering &lowering, const std::vector<int> &results, const std::vector<Halide::Var> &vars, const Joins &joins = {});

/// True if the kernel reads the strides of the buffers of these results, which share an output.
bool reads_strides(const LoweredKernel &kernel, const std::vector<int> &results);

/// Groups the program's results by shape, in the order in which the shapes first appear.
std::vector<std::vector<int>> results_by_shape(const Program &program);
/// Adds all results of the program, with one output for each shape.
void add_outputs_by_shape(Lowering &lowering);

} // namespace scalide

#pragma once
#include "ir/program.h"
#include "rulebook/rulebook.h"
#include <functional>

namespace scalide {

struct Operation;

/// A dense row-major array of f64 values, which represent integers and bools exactly.
struct Array {
    Dtype dtype = Dtype::f32;
    std::vector<int64_t> shape;
    std::vector<double> data;
    std::vector<double> error = {}; ///< the largest error of each element; empty: no error. Only a caller's `run` fills it in.
};

enum class Mode {
    real,   ///< the meaning of a program: f64 throughout; conversions between floats do nothing
    stored, ///< every node is rounded to its dtype (a sum is exact and rounded once); compiled kernels must agree within a tolerance
};

/// Runs a program. It may contain calls and any operator that has a rule; composites run through their `value`. The shapes of `inputs`
/// determine the symbols. Inputs are in the order of the arguments, and outputs in the order of the results. Throws UserError if inputs do
/// not fit the arguments. Also throws it if a program names a `kind` of kernel and is not such a kernel (kinds/kernel_kinds.h). In mode
/// `stored`, inputs are rounded to the dtype of their argument. A node whose rule changes only the storage (dynamic_rescale, set_scaling
/// ...) is then the identity, as its `value` states. Integers wrap around at 32 bits. A conversion to an integer saturates, and NaN becomes
/// 0.
std::vector<Array> interpret(const Program &program, const std::vector<Array> &inputs, const Rulebook &rulebook, Mode mode);

/// Does the same with another function that runs one base operator (interpret/operation.h).
std::vector<Array> interpret(const Program &program, const std::vector<Array> &inputs, const Rulebook &rulebook, Mode mode,
                             const std::function<void(Operation &)> &run);

/// Sees the results of each node after it has run. The program is the main program, a sub-program, a region, or the value of a composite.
using Observe = std::function<void(const Program &program, const Node &node, const std::vector<Array> &results)>;

/// Does the same and calls `observe` for each node, also for composites, loops and branches, which consist of base operators.
std::vector<Array> interpret(const Program &program, const std::vector<Array> &inputs, const Rulebook &rulebook, Mode mode,
                             const std::function<void(Operation &)> &run, const Observe &observe);

} // namespace scalide

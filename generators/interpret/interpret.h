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
    std::vector<double> error = {}; ///< how far each element may be off; empty: not at all. Filled only where a caller's `run` does so.
};

enum class Mode {
    real,   ///< f64 throughout; float converts are the identity. What a program means.
    stored, ///< every node is rounded to its dtype (sums are exact, rounded once). What compiled kernels must give, within tolerance.
};

/// Runs a program: any operator with a rule (composites through their `value`), calls, extents bound by the shapes of `inputs`.
/// Inputs are in argument order; outputs in result order. Throws UserError when inputs do not fit the arguments, or a
/// program that says which `kind` of kernel it is is none (kinds/kernel_kinds.h).
/// In mode `stored` a node whose rule changes storage only (dynamic_rescale, set_scaling ...) is the identity that its `value` says,
/// and inputs are rounded to the dtype of their argument. Integers wrap around at 32 bits, a convert to them saturates (NaN: 0).
std::vector<Array> interpret(const Program &program, const std::vector<Array> &inputs, const Rulebook &rulebook, Mode mode);

/// The same with another way to run one base operator (interpret/operation.h).
std::vector<Array> interpret(const Program &program, const std::vector<Array> &inputs, const Rulebook &rulebook, Mode mode,
                             const std::function<void(Operation &)> &run);

} // namespace scalide

#pragma once
#include "lower/kernel/budgets.h"
#include "lower/kernel/lowered_kernel.h"

namespace scalide {

/// One operand of a compiled kernel. Callers pass the operands in this order, after the user context.
struct KernelOperand {
    enum class Kind { argument, result, symbol } kind;
    int index = -1;     ///< index of the kernel program's argument or result
    std::string symbol; ///< Kind::symbol: passed as an int32
    Type type; ///< type of the buffer as the kernel sees it: axes are merged or dropped, so it may have fewer elements than the program's
               ///< type
    bool strided = false; ///< the kernel reads the strides of this buffer, see LoweredKernel::reads_strides
};

/// Return the arguments of a lowered kernel in call order, for Halide and for the caller.
std::vector<Halide::Argument> halide_arguments(const LoweredKernel &kernel);
std::vector<KernelOperand> call_order(const LoweredKernel &kernel);

/// Returns the pipeline of the outputs in call order. Its Funcs must have schedules.
Halide::Pipeline to_pipeline(const LoweredKernel &kernel);

/// Returns a kernel with its program, symbols and inputs, and without outputs: where lowering begins.
LoweredKernel begin_kernel(const Program &kernel, const Halide::Target &target);

/// Lowers a kernel by its attribute `kind`. Throws InternalError if the program violates the contract of its kind.
LoweredKernel lower(const Program &kernel, const Halide::Target &target, const Budgets &budgets);

} // namespace scalide

#pragma once
#include "ir/program.h"
#include "lower/budgets.h"
#include "lower/stages.h"

namespace scalide {

/// One Func of the pipeline that leaves it. Results that share a loop are the components of one Tuple.
struct KernelOutput {
    Halide::Func func;
    std::vector<int> results; ///< of the kernel program, one a component
};

/// Input buffers are named this and the number of the argument.
constexpr const char *argument_prefix = "argument_";

/// A kernel program turned into Halide, still without a schedule. Buffers are dense and row-major in the program, so dimension 0 of a
/// Halide buffer is the last axis. Types are storage words: f32, f64, i32 as they are, 16-bit formats UInt(16), 8-bit formats and bool
/// UInt(8).
struct LoweredKernel {
    std::string kind;
    Program program; ///< with merged axes (lower/axes/axes.h): the buffers have the shapes of its arguments and results
    std::map<std::string, Halide::Param<int>> symbols; ///< by symbol name, all that the program declares
    std::vector<Halide::ImageParam> inputs; ///< by argument of the kernel program; undefined for an inout argument that a result overwrites
    std::vector<KernelOutput> outputs;      ///< in call order
    std::vector<Halide::Func> shared;       ///< (): single elements that are computed before the loops (lower/shared.h)
    Stages stages;                          ///< of its kind
};

/// How a caller passes arguments to a compiled kernel, in call order (after the user context).
struct KernelOperand {
    enum class Kind { argument, result, symbol } kind;
    int index = -1;     ///< of the kernel program's argument or result
    std::string symbol; ///< Kind::symbol: an int32 by value
    Type type;          ///< of the buffer, as the kernel sees it: axes merged or dropped, never more elements than the program's
};

/// Halide arguments of a lowered kernel in call order, and the same in the words of the program.
std::vector<Halide::Argument> halide_arguments(const LoweredKernel &kernel);
std::vector<KernelOperand> call_order(const LoweredKernel &kernel);

/// The pipeline that makes the outputs, in call order, from Funcs that are scheduled.
Halide::Pipeline to_pipeline(const LoweredKernel &kernel);

/// Lowers by the attribute `kind`. Throws InternalError on a program that is not of that kind.
LoweredKernel lower(const Program &kernel, const Halide::Target &target, const Budgets &budgets);

/// The i32 Expr of an extent over the kernel's symbol parameters.
Halide::Expr to_expr(const Extent &extent, const LoweredKernel &kernel);

} // namespace scalide

#pragma once
#include "ir/program.h"
#include "lower/kernel/stages.h"

namespace scalide {

/// One output Func of the pipeline. Results that share a loop are components of one Tuple.
struct KernelOutput {
    Halide::Func func;
    std::vector<int> results;            ///< results of the kernel program, one for each component
    std::optional<int> joined_axis = {}; ///< each update writes one part of this axis, which is its RVar
};

/// The name of an input buffer is this prefix and the index of the argument.
constexpr const char *argument_prefix = "argument_";

/// A kernel program lowered to Halide without a schedule. Buffers are row-major, and dense unless reads_strides. So dimension 0 of a Halide
/// buffer is the last axis. Element types are storage types: f32, f64 and integers keep their type, 16-bit floats are UInt(16), 8-bit
/// floats and bool are UInt(8).
struct LoweredKernel {
    std::string kind;
    /// True if the buffers of arguments, and of results that overwrite no argument, may have any strides above the innermost axis. The
    /// kernel then reads these strides at run time. False if all strides are those of dense arrays.
    bool reads_strides = false;
    /// True if functions are computed by the instructions of a CUDA GPU. False if their bits are those of a CPU.
    bool has_device_arithmetic = false;
    Program program; ///< after shape_kernel (lower/shapes/kernel_passes.h): buffers have the shapes of its arguments and results
    std::map<std::string, Halide::Param<int>> symbols; ///< by name: all symbols that the program declares
    /// By argument. Undefined for an inout argument that a result overwrites: the output is also the input, and each element is read where
    /// it is written. Defined if a matmul also reduces such an argument. Both buffers are then the same memory, so an element must be
    /// copied from the input before it is written (EpilogueFoldStages::kept).
    std::vector<Halide::ImageParam> inputs;
    std::vector<KernelOutput> outputs; ///< in call order
    std::vector<Halide::Func> shared;  ///< (): single elements that are computed before the loops (lower/values/shared.h)
    Stages stages;                     ///< stages of the kernel class
};

/// Returns an extent as an i32 Expr of the kernel's symbol parameters.
Halide::Expr to_expr(const Extent &extent, const LoweredKernel &kernel);

} // namespace scalide

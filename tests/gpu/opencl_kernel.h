#pragma once
#include "kernels/compiled_kernel.h"
#include <optional>

namespace scalide {

/// What `--target opencl` compiles kernels for, to be run by Halide's own runtime.
Halide::Target opencl_target();

/// Returns why no OpenCL kernel can run here, or nullopt if one can.
std::optional<std::string> why_no_opencl();

/// A kernel program with the schedule for GPUs, compiled and run by Halide's JIT on the first OpenCL device.
class OpenclKernel {
public:
    explicit OpenclKernel(const Program &program);

    /// False when a result, or what a reduction stores, is empty: Halide's own runtime can neither allocate nothing nor launch no blocks.
    bool can_run(const Extent::Bindings &symbols) const;
    /// Like CompiledKernel::run.
    std::vector<Words> run(std::vector<Words> &arguments, const Extent::Bindings &symbols) const;

private:
    Halide::Target target_ = opencl_target();
    LoweredKernel kernel_;
    Halide::Pipeline pipeline_;
};

} // namespace scalide

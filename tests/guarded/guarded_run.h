#pragma once
#include "interpret/interpret.h"
#include "kernels/compiled_kernel.h"
#include <random>

namespace scalide {

/// As CompiledKernel::run; nothing where the device cannot run a kernel of these extents.
using RunKernel =
    std::function<std::optional<std::vector<Words>>(std::vector<Words> &arguments, const Extent::Bindings &sizes, Guard guard)>;
using MakeKernel = std::function<RunKernel(const Program &kernel)>;

/// Compiled for the host.
RunKernel host_kernel(const Program &kernel);
/// The same with a check at every access.
RunKernel checked_kernel(const Program &kernel);

/// Runs a kernel on arrays that are guarded and poisoned, at one end and then at the other. Throws std::runtime_error when its results
/// differ from the interpreter's, from one end to the other, or when it writes where it must not; dies of an access outside of an array.
std::vector<Array> run_guarded(const RunKernel &kernel, const Program &program, const std::vector<Array> &inputs,
                               const Extent::Bindings &sizes);

/// The kernels of a program behind `fuse`, compiled at their first call.
class GuardedProgram {
public:
    using Tell = std::function<void(const std::string &place)>;

    GuardedProgram(const Program &fused, Tell tell, MakeKernel make = host_kernel)
        : fused_(fused), tell_(std::move(tell)), make_(std::move(make)) {}

    /// Each kernel on what those before it made; see run_guarded.
    void run(const Extent::Bindings &sizes, std::mt19937 &random);

private:
    const Program &fused_;
    Tell tell_;
    MakeKernel make_;
    std::map<std::string, RunKernel> kernels_;
};

/// `# sizes: b=3 n=17` and the program: a text of tests/kernels.
std::string kernel_case(const Program &kernel, const Extent::Bindings &sizes);

std::vector<Array> draw_guarded_inputs(const Program &program, const Extent::Bindings &sizes, std::mt19937 &random);

} // namespace scalide

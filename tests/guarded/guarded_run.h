#pragma once
#include "interpret/interpret.h"
#include "kernels/compiled_kernel.h"
#include <random>

namespace scalide {

/// Like CompiledKernel::run. Returns nothing if the device cannot run a kernel of these extents.
using RunKernel =
    std::function<std::optional<std::vector<Words>>(std::vector<Words> &arguments, const Extent::Bindings &sizes, Guard guard)>;
using MakeKernel = std::function<RunKernel(const Program &kernel)>;

/// Compiles the kernel for the CPU.
RunKernel host_kernel(const Program &kernel);
/// Does the same with a check at every access.
RunKernel checked_kernel(const Program &kernel);

/// Runs a kernel twice on poisoned arrays, with a guard page at one end and then at the other. Throws std::runtime_error if the results of
/// the two runs differ, if they differ from the interpreter's, or if the kernel writes where it must not. An access outside an array kills
/// the process.
std::vector<Array> run_guarded(const RunKernel &kernel, const Program &program, const std::vector<Array> &inputs,
                               const Extent::Bindings &sizes);

/// The kernels of a fused program. Each is compiled at its first call.
class GuardedProgram {
public:
    using Tell = std::function<void(const std::string &place)>;

    GuardedProgram(const Program &fused, Tell tell, MakeKernel make = host_kernel)
        : fused_(fused), tell_(std::move(tell)), make_(std::move(make)) {}

    /// Runs each kernel on the results of the earlier ones; see run_guarded.
    void run(const Extent::Bindings &sizes, std::mt19937 &random);

private:
    const Program &fused_;
    Tell tell_;
    MakeKernel make_;
    std::map<std::string, RunKernel> kernels_;
};

/// Returns a text for tests/kernels: `# sizes: b=3 n=17` and the program.
std::string kernel_case(const Program &kernel, const Extent::Bindings &sizes);

std::vector<Array> draw_guarded_inputs(const Program &program, const Extent::Bindings &sizes, std::mt19937 &random);

} // namespace scalide

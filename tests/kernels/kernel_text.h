#pragma once
#include "interpret/interpret.h"
#include "ir/text.h"
#include "kernels/compiled_kernel.h"
#include <functional>
#include <set>

namespace scalide {

/// A kernel text under tests/kernels and what its comments ask for:
///   # sizes: b=0; b=1; b=1000        one run each; absent: one run
///   # inputs: positive               above 0.1; `special`: zeros, infinities and NaN among them; absent: within 3 of zero
///   # launches: 1                    of a device; absent: any number
///   # ptx: ld.global.nc.v4=2; ...    how many lines of the CUDA code have this word, all kernels of the text together
struct KernelText {
    Program program;
    std::vector<Extent::Bindings> sizes;
    std::string inputs;
    int launches = 0; ///< 0: any number of launches
    std::map<std::string, int> ptx;
};

KernelText read_kernel_text(const std::filesystem::path &path);
/// Returns all texts. The name of the folder is the kernel class.
std::set<std::filesystem::path> kernel_texts();
/// The same without class `small`, of which GPUs have no kernels.
std::set<std::filesystem::path> kernel_texts_for_gpus();

/// The arguments of one run, as numbers and as storage words. They are the same in every run.
struct KernelArguments {
    std::vector<Array> arrays;
    std::vector<Words> words;
};
KernelArguments draw_arguments(const KernelText &text, const Extent::Bindings &sizes);

/// Compares the results of CompiledKernel::run for `arguments` with the interpreter. Each element may differ by as much as f32 roundings
/// explain (support/rounding_errors).
void expect_interpreted(const KernelText &text, const Extent::Bindings &sizes, const KernelArguments &arguments,
                        const std::function<std::vector<Words>(std::vector<Words> &)> &run);

/// Describes the run for SCOPED_TRACE.
std::string describe_run(const KernelText &text, const Extent::Bindings &sizes);

} // namespace scalide

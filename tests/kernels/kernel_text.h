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
    int launches = 0; ///< 0: any number
    std::map<std::string, int> ptx;
};

KernelText read_kernel_text(const std::filesystem::path &path);
/// All texts; the name of the folder is the kind.
std::set<std::filesystem::path> kernel_texts();

/// The arguments of one run, as numbers and as words; the same in every run.
struct KernelArguments {
    std::vector<Array> arrays;
    std::vector<Words> words;
};
KernelArguments draw_arguments(const KernelText &text, const Extent::Bindings &sizes);

/// What CompiledKernel::run gives for `arguments` must agree with the interpreter, each element as far as roundings of f32 make it differ
/// (support/rounding_errors).
void expect_interpreted(const KernelText &text, const Extent::Bindings &sizes, const KernelArguments &arguments,
                        const std::function<std::vector<Words>(std::vector<Words> &)> &run);

/// For SCOPED_TRACE.
std::string describe_run(const KernelText &text, const Extent::Bindings &sizes);

} // namespace scalide

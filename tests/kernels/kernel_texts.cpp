#include "ir/verify.h"
#include "kernels/kernel_text.h"
#include <gtest/gtest.h>

// Runs every kernel text under tests/kernels at the extents that its comments request (kernel_text.h), on arrays next to an inaccessible
// page. The results must agree with the interpreter.
namespace scalide {
namespace {

namespace fs = std::filesystem;

class KernelCase : public testing::Test {
public:
    explicit KernelCase(fs::path path) : path_(std::move(path)) {}

    void TestBody() override {
        const KernelText text = read_kernel_text(path_);
        verify(text.program, "test");
        const CompiledKernel kernel(text.program);
        verify(kernel.lowered().program, "merge_axes");
        for (const std::string &symbol : kernel.undefined_symbols()) {
            EXPECT_TRUE(provided().count(symbol)) << symbol << " is nothing that the runtime gives to a kernel";
        }
        const CompiledKernel checked(text.program, kernel_target(), Accesses::checked);
        for (const Extent::Bindings &sizes : text.sizes) {
            if (elements(text.program, sizes) <= most_checked)
                expect_interpreted(text, sizes, draw_arguments(text, sizes), [&](auto &words) { return checked.run(words, sizes); });
            for (const Guard guard : {Guard::behind, Guard::before}) {
                expect_interpreted(text, sizes, draw_arguments(text, sizes), [&](auto &words) { return kernel.run(words, sizes, guard); });
            }
        }
    }

private:
    static constexpr int64_t most_checked = 100000; ///< elements: checks of a million take seconds

    static int64_t elements(const Program &kernel, const Extent::Bindings &sizes) {
        int64_t sum = 0;
        for (const Argument &argument : kernel.arguments) sum += element_count(kernel.type(argument.value).shape).evaluate(sizes);
        for (const Result &result : kernel.results) sum += element_count(kernel.type(result.value).shape).evaluate(sizes);
        return sum;
    }

    static const std::set<std::string> &provided() {
        static const std::set<std::string> names = {"halide_do_par_for", "halide_malloc", "halide_free", "memset", "memcpy"};
        return names;
    }

    fs::path path_;
};

void register_cases() {
    for (const fs::path &path : kernel_texts()) {
        const std::string kind = path.parent_path().filename().string();
        if (kind == "tiled") continue; // for GPUs only: tests/gpu and tests/device run these texts
        testing::RegisterTest(kind.c_str(), path.stem().string().c_str(), nullptr, nullptr, __FILE__, __LINE__,
                              [path]() -> KernelCase * { return new KernelCase(path); });
    }
}

[[maybe_unused]] const bool registered = (register_cases(), true);

} // namespace
} // namespace scalide

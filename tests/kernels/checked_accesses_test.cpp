#include "ir/text.h"
#include "kernels/checked_accesses.h"
#include "kernels/compiled_kernel.h"
#include "schedules/schedule.h"
#include <gtest/gtest.h>
#include <numeric>

namespace scalide {

namespace {

const char *const text = R"(program bias {kind: map} (x: f32[n]) -> (y: f32[n] = y) {
  y = exp(x) : f32[n]
}
)";

/// What is found of a kernel that runs on n elements when its argument is said to have `said` of them.
std::string wrong_access(int n, const Extent &said) {
    LoweredKernel kernel = lower(parse_program(text, "text"), kernel_target(), choose_budgets(kernel_target()));
    schedule(kernel, choose_tiles(kernel, kernel_target()), kernel_target());
    Halide::Pipeline pipeline = to_pipeline(kernel);
    kernel.program.values[size_t(kernel.program.arguments[0].value)].type.shape[0] = said;
    check_accesses(pipeline, kernel);
    Halide::Buffer<float> x(n);
    std::iota(x.begin(), x.end(), 0.f);
    kernel.inputs[0].set(x);
    kernel.symbols.at("n").set(n);
    Halide::Buffer<float> y = pipeline.realize({n}, Halide::get_host_target());
    return take_wrong_access();
}

// A test of the test: the last elements of a kernel whose tail is masked, and those of one of whole vectors.
TEST(checked_accesses, says_what_leaves_an_array) {
    for (const int n : {1, 17, 64, 129, 1000}) {
        EXPECT_EQ(wrong_access(n, Extent::symbol("n")), "") << n;
        EXPECT_NE(wrong_access(n, Extent::symbol("n") - 1), "") << n;
        EXPECT_NE(wrong_access(n, n - 1), "") << n;
    }
}

} // namespace

} // namespace scalide

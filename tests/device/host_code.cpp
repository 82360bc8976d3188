// device.host_code.*: what the host code of a device's kernel may not do is found when it is compiled.
#include "emit/host_code.h"
#include "emit/compile_kernel.h"
#include "expr/error.h"
#include <gtest/gtest.h>

using namespace scalide;
using Halide::Func;
using Halide::Var;

namespace {

/// out(x) = select(x0 < 0, stage(x), 0): Halide asks on the host whether the stage is used.
struct Selecting {
    Halide::ImageParam in{Halide::Float(32), 1};
    Var x{"x"}, block{"block"}, thread{"thread"};
    Func stage{"stage"}, out{"out"};

    Selecting() {
        stage(x) = in(x)*in(x)*3.0f;
        out(x) = select(in(0) < 0, stage(x) + stage(x + 1), 0);
        out.gpu_tile(x, block, thread, 32, Halide::TailStrategy::GuardWithIf);
        stage.compute_root();
    }
    Halide::Module compile(Halide::Pipeline &pipeline) const { return pipeline.compile_to_module({in}, "kernel", parse_target("opencl")); }
};

std::string refusal(const Halide::Module &module) {
    try {
        check_host_code(module);
        return "";
    } catch (const InternalError &error) {
        return error.what();
    }
}

} // namespace

TEST(host_code, reads_no_condition) {
    Selecting kernel;
    kernel.stage.gpu_tile(kernel.x, kernel.block, kernel.thread, 32, Halide::TailStrategy::GuardWithIf);
    Halide::Pipeline asks(kernel.out), uses(kernel.out);
    EXPECT_NE(refusal(kernel.compile(asks)).find("host code of a device's kernel reads no arrays, got p"), std::string::npos);
    use_all_stages(uses);
    EXPECT_EQ(refusal(kernel.compile(uses)), "");
}

TEST(host_code, has_no_stage_of_its_own) {
    const Selecting kernel; // its stage is scheduled for the CPU
    Halide::Pipeline pipeline(kernel.out);
    EXPECT_NE(refusal(kernel.compile(pipeline)).find("reads no arrays"), std::string::npos);
}

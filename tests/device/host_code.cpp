// device.host_code.*: what the host code of a device's kernel may not do is found when it is compiled.
#include "emit/host_code.h"
#include "emit/compile_kernel.h"
#include "expr/error.h"
#include <gtest/gtest.h>
#include <sstream>

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
    adapt_host_code(uses);
    EXPECT_EQ(refusal(kernel.compile(uses)), "");
}

TEST(host_code, has_no_stage_of_its_own) {
    const Selecting kernel; // its stage is scheduled for the CPU
    Halide::Pipeline pipeline(kernel.out);
    EXPECT_NE(refusal(kernel.compile(pipeline)).find("reads no arrays"), std::string::npos);
}

// Halide moves what depends on no thread out of the loops of threads.
TEST(host_code, computes_with_instructions_of_the_host) {
    const Halide::Param<int> b("b");
    const Halide::Expr size = Halide::cast<float>(b);
    const auto call = [](const char *name, const std::vector<Halide::Expr> &arguments) {
        return Halide::Internal::Call::make(Halide::Float(32), name, arguments, Halide::Internal::Call::PureExtern);
    };
    const Var x("x"), block("block"), thread("thread");
    Func out("out");
    out(x) = call("fma", {call("llvm.nvvm.mul.rn.f", {size, size}), size, size}) * Halide::cast<float>(x);
    out.gpu_tile(x, block, thread, 32, Halide::TailStrategy::GuardWithIf);
    Halide::Pipeline pipeline(out);
    adapt_host_code(pipeline);
    std::ostringstream host;
    for (const auto &function : pipeline.compile_to_module({b}, "kernel", parse_target("cuda")).functions()) host << function.body;
    EXPECT_NE(host.str().find("strict_mul"), std::string::npos) << host.str();
    EXPECT_NE(host.str().find("fmaf("), std::string::npos) << host.str();
    EXPECT_EQ(host.str().find("nvvm"), std::string::npos) << host.str();
}

#include "gpu/opencl_kernel.h"
#include "kernels/kernel_text.h"
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>

// Every kernel text under tests/kernels, scheduled for a GPU, on an OpenCL device: it must agree with the interpreter, and give the bits of
// the kernel for the CPU. Kernels of class tiled are for GPUs only.
namespace scalide {
namespace {

namespace fs = std::filesystem;

/// This CPU, without instructions that add pairs of bf16 products, whose rounding no GPU has.
Halide::Target target_without_pairs() {
    Halide::Target target = kernel_target();
    for (const auto feature : {Halide::Target::AVX512_Zen4, Halide::Target::AVX512_Zen5, Halide::Target::AVX512_SapphireRapids})
        target = target.without_feature(feature);
    return target;
}

class GpuKernelCase : public testing::Test {
public:
    explicit GpuKernelCase(fs::path path) : path_(std::move(path)) {}

    void TestBody() override {
        if (const auto reason = why_no_opencl()) GTEST_SKIP() << *reason;
        const KernelText text = read_kernel_text(path_);
        std::optional<CompiledKernel> cpu;
        if (text.program.attributes.at("kind").word != "tiled") cpu.emplace(text.program, target_without_pairs());
        const OpenclKernel gpu(text.program);
        for (const Extent::Bindings &sizes : text.sizes) {
            if (!gpu.can_run(sizes)) continue;
            const KernelArguments arguments = draw_arguments(text, sizes);
            expect_interpreted(text, sizes, arguments, [&](auto &words) {
                const std::vector<Words> got = gpu.run(words, sizes);
                if (!cpu) return got;
                std::vector<Words> on_cpu = arguments.words;
                const std::vector<Words> expected = cpu->run(on_cpu, sizes);
                expect_same(text.program, {on_cpu, expected}, {words, got});
                return got;
            });
        }
    }

private:
    struct Run {
        const std::vector<Words> &arguments, &results;
        const Words &of(const Result &result, size_t number) const {
            return result.argument >= 0 ? arguments[result.argument] : results[number];
        }
    };

    /// The words of f32 with the same bits for every NaN. The sign of a NaN depends on the order of operands, which no compiler keeps.
    static Words with_one_nan(Dtype dtype, Words words) {
        for (size_t at = 0; dtype == Dtype::f32 && at < words.size(); at += sizeof(float)) {
            float value;
            std::memcpy(&value, &words[at], sizeof value);
            if (std::isnan(value)) value = std::numeric_limits<float>::quiet_NaN();
            std::memcpy(&words[at], &value, sizeof value);
        }
        return words;
    }

    static void expect_same(const Program &program, const Run &cpu, const Run &gpu) {
        for (size_t r = 0; r < program.results.size(); r++) {
            const Result &result = program.results[r];
            const Dtype dtype = program.type(result.value).dtype;
            EXPECT_EQ(with_one_nan(dtype, cpu.of(result, r)), with_one_nan(dtype, gpu.of(result, r)))
                << result.name << " has other bits than on the CPU";
        }
    }

    fs::path path_;
};

void register_cases() {
    for (const fs::path &path : kernel_texts_for_gpus()) {
        const std::string kind = path.parent_path().filename().string();
        testing::RegisterTest(kind.c_str(), path.stem().string().c_str(), nullptr, nullptr, __FILE__, __LINE__,
                              [path]() -> GpuKernelCase * { return new GpuKernelCase(path); });
    }
}

[[maybe_unused]] const bool registered = (register_cases(), true);

} // namespace
} // namespace scalide

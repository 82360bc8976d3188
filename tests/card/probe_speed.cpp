// card.probes_of_speed.*: how fast the matmuls of cuBLASLt are on this GPU. These tests report findings only, because timings are noisy.
#include "card/probes.h"
#include "performance/measuring.h"
#include <algorithm>

namespace scalide {

using namespace cublaslt;

namespace {

struct Extents {
    int64_t m, n, k;
};

class probes_of_speed : public probes {
protected:
    /// A product of f8_e4m3fn into bf16 with memory for scales of each mode, all of them 1.
    struct Memory {
        DeviceBytes a, b, d, scales;
    };
    Memory memory_of(const Extents &extents) const {
        const auto &[m, n, k] = extents;
        const int64_t scales = std::max(m, n) * ((k + 127) / 128) + 4;
        return {random(Dtype::f8_e4m3fn, m * k), random(Dtype::f8_e4m3fn, n * k), random(Dtype::bf16, m * n),
                on_device(Dtype::f32, std::vector<double>(static_cast<size_t>(scales), 1.0))};
    }
    BarePointers pointers_of(const Memory &memory) const {
        return {.a = memory.a.data(),
                .b = memory.b.data(),
                .d = memory.d.data(),
                .scale_a = memory.scales.data(),
                .scale_b = memory.scales.data(),
                .workspace = workspace_->data()};
    }
    static BareDesc desc_of(const Extents &extents) {
        return {.a = r_8f_e4m3, .b = r_8f_e4m3, .d = r_16bf, .m = extents.m, .n = extents.n, .k = extents.k};
    }
    static double teraflops(const Extents &extents, double milliseconds) {
        return 2e-9 * static_cast<double>(extents.m) * static_cast<double>(extents.n) * static_cast<double>(extents.k) / milliseconds;
    }
    /// Returns the speed of the heuristic's first proposal, or a message if there is none.
    std::string speed(const BareDesc &desc, const BarePointers &pointers) const {
        try {
            const BareMatmul matmul(*library_, desc, pointers);
            const std::vector<HeuristicResult> candidates = matmul.candidates(1);
            if (candidates.empty()) return "no algorithm";
            return std::to_string(teraflops({desc.m, desc.n, desc.k}, milliseconds(matmul, candidates[0].algorithm))) + " TFLOP/s";
        } catch (const std::runtime_error &error) {
            return error.what();
        }
    }
};

} // namespace

TEST_F(probes_of_speed, scales_and_accumulation) {
    constexpr struct {
        const char *name;
        int32_t a, b;
        bool fast;
    } modes[] = {{"a scale a tensor", scalar_32f, scalar_32f, false},
                 {"a scale a tensor, fast accumulation", scalar_32f, scalar_32f, true},
                 {"a scale a row", outer_vec_32f, outer_vec_32f, false},
                 {"a scale for 1x128 each", vec128_32f, vec128_32f, false},
                 {"a scale for 128x128 and for 1x128", blk128x128_32f, vec128_32f, false}};
    for (const int64_t n : {4096, 8192, 16384}) {
        const Extents extents{shrunk(n), shrunk(n), shrunk(n)};
        const Memory memory = memory_of(extents);
        for (const auto &mode : modes) {
            BareDesc desc = desc_of(extents);
            desc.a_scale_mode = mode.a, desc.b_scale_mode = mode.b, desc.fast_accumulation = mode.fast;
            finding("%d^3, %s: %s", static_cast<int>(extents.m), mode.name, speed(desc, pointers_of(memory)).c_str());
        }
    }
}

/// The runtime asks for eight proposals and takes the first that runs, or the fastest.
TEST_F(probes_of_speed, proposals_of_the_heuristic) {
    for (const Extents &whole :
         {Extents{8192, 8192, 8192}, Extents{4096, 8192, 4096}, Extents{16384, 8192, 4096}, Extents{4096, 16, 4096}}) {
        const Extents extents{shrunk(whole.m), whole.n == 16 ? 16 : shrunk(whole.n), shrunk(whole.k)};
        const Memory memory = memory_of(extents);
        const BareMatmul matmul(*library_, desc_of(extents), pointers_of(memory));
        const auto ask = [&](int most) {
            const auto start = measuring::Clock::now();
            const std::vector<HeuristicResult> found = matmul.candidates(most);
            return std::pair(found, 1e3 * measuring::milliseconds_since(start));
        };
        const auto [found, first_us] = ask(32);
        ASSERT_FALSE(found.empty());
        const double again_us = ask(1).second;
        std::vector<double> times;
        for (const HeuristicResult &candidate : found)
            if (candidate.state == 0 && matmul.run(candidate.algorithm, driver_->stream()) == 0)
                times.push_back(milliseconds(matmul, candidate.algorithm));
        ASSERT_FALSE(times.empty());
        const auto best = std::ranges::min_element(times),
                   best_of_8 = std::min_element(times.begin(), times.begin() + std::min<long>(8, std::ssize(times)));
        finding("%d x %d x %d: the first %.4f ms, the best of 8 %.4f, the best of %d %.4f (number %d); asking takes %.0f us, again %.0f",
                static_cast<int>(extents.m), static_cast<int>(extents.n), static_cast<int>(extents.k), times[0], *best_of_8,
                static_cast<int>(times.size()), *best, static_cast<int>(best - times.begin()) + 1, first_us, again_us);
    }
}

/// CPU time of a call compared with a call without work: a plan makes one call for each matmul.
TEST_F(probes_of_speed, a_call) {
    const Extents extents{16, 16, 16};
    const Memory memory = memory_of(extents);
    const BareMatmul matmul(*library_, desc_of(extents), pointers_of(memory));
    const std::vector<HeuristicResult> candidates = matmul.candidates(1);
    ASSERT_FALSE(candidates.empty());
    finding("a product of 16 x 16 x 16 takes %.2f us", 1e3 * milliseconds(matmul, candidates[0].algorithm));
}

} // namespace scalide

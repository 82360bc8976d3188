#include "performance/peak.h"
#include <algorithm>
#include <chrono>

namespace scalide::performance {
namespace {

// 24 accumulators cover the latency of two FMA a cycle; the compiler keeps them in registers.
#if defined(__AVX512F__)
constexpr int lanes = 16;
#else
constexpr int lanes = 8;
#endif
constexpr int accumulators = lanes == 16 ? 24 : 12;
using Vector [[gnu::vector_size(lanes * 4)]] = float;

double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

[[gnu::noinline]] float run(int steps, float factor) {
    Vector sums[accumulators] = {}, a = factor + Vector{}, b = factor - Vector{};
    for (int i = 0; i < steps; i++) {
        for (Vector &sum : sums) {
            sum = a * b + sum;
            asm("" : "+v"(sum));
        }
    }
    float total = 0;
    for (const Vector &sum : sums) {
        total += sum[0];
    }
    return total;
}

} // namespace

double measure_fma_peak() {
    constexpr int steps = 20000;
    double best = 0;
    volatile float sink = 0.5f;
    for (int i = 0; i < 40; i++) {
        const double start = seconds();
        sink = run(steps, sink * 1e-3f);
        best = std::max(best, 2e-9 * lanes * accumulators * steps / (seconds() - start));
    }
    return best;
}

} // namespace scalide::performance

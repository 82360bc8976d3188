#include "performance/peak.h"
#include <algorithm>
#include <chrono>

namespace scalide::performance {
namespace {

#if defined(__AVX512F__)
#define REGISTER(i) "%%zmm" #i
constexpr int lanes = 16;
#else
#define REGISTER(i) "%%ymm" #i
constexpr int lanes = 8;
#endif
#define FMA(i) "vfmadd231ps " REGISTER(12) ", " REGISTER(13) ", " REGISTER(i) "\n"
#define CLEAR(i) "vxorps " REGISTER(i) ", " REGISTER(i) ", " REGISTER(i) "\n"
#define EACH(step) step(0) step(1) step(2) step(3) step(4) step(5) step(6) step(7) step(8) step(9) step(10) step(11)
#define CLOBBERS "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13"
constexpr int accumulators = 12; ///< cover the latency of two FMA a cycle

double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

/// Assembly, as compilers keep an array of accumulators in memory.
void run(int steps) {
    asm volatile(EACH(CLEAR) CLEAR(12) CLEAR(13)::: CLOBBERS);
    for (int i = 0; i < steps; i++) {
        asm volatile(EACH(FMA)::: CLOBBERS);
    }
}

} // namespace

double measure_fma_peak() {
    constexpr int steps = 40000;
    double best = 0;
    for (int i = 0; i < 40; i++) {
        const double start = seconds();
        run(steps);
        best = std::max(best, 2e-9 * lanes * accumulators * steps / (seconds() - start));
    }
    return best;
}

} // namespace scalide::performance

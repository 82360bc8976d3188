// Measures what this machine can do at most, on every line of standard input: a copy of 64 MiB that does not read what it writes, and FMAs
// of f32 in registers. Answers with JSON: GB/s that are read and written, and GFLOP/s. Usage: limits THREADS
#include "performance/measuring.h"
#include "performance/peak.h"
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace {

using scalide::measuring::Clock;
using scalide::measuring::milliseconds_since;

constexpr size_t size = 64 << 20;

template<typename Function>
void on_threads(size_t threads, const Function &function) {
    std::vector<std::thread> workers;
    for (size_t t = 0; t < threads; t++) workers.emplace_back(function, t);
    for (std::thread &worker : workers) worker.join();
}

void copy(char *to, const char *from, size_t bytes) {
#if defined(__SSE2__)
    for (size_t i = 0; i < bytes; i += sizeof(__m128i))
        _mm_stream_si128(reinterpret_cast<__m128i *>(to + i), _mm_load_si128(reinterpret_cast<const __m128i *>(from + i)));
    _mm_sfence();
#else
    std::memcpy(to, from, bytes);
#endif
}

/// The best of a few copies: gigabytes a second, read and written.
double copy_rate(char *to, const char *from, size_t threads) {
    const size_t part = size / threads / 64 * 64;
    double best = 0;
    for (int repeat = 0; repeat < 5; repeat++) {
        const Clock::time_point start = Clock::now();
        on_threads(threads, [&](size_t t) { copy(to + t * part, from + t * part, part); });
        best = std::max(best, 2e-6 * double(part * threads) / milliseconds_since(start));
    }
    return best;
}

double peak(size_t threads) {
    std::vector<double> rates(threads);
    on_threads(threads, [&](size_t t) { rates[t] = scalide::performance::measure_fma_peak(); });
    return std::accumulate(rates.begin(), rates.end(), 0.0);
}

} // namespace

int main(int argc, char **argv) {
    const size_t threads = argc > 1 ? size_t(std::max(1, std::atoi(argv[1]))) : 1;
    char *from = static_cast<char *>(std::aligned_alloc(4096, size)), *to = static_cast<char *>(std::aligned_alloc(4096, size));
    std::memset(from, 1, size);
    std::memset(to, 1, size);
    for (std::string line; std::getline(std::cin, line);) {
        std::printf("{\"copy_gbs\": %.2f, \"fma_gflops\": %.1f}\n", copy_rate(to, from, threads), peak(threads));
        std::fflush(stdout);
    }
}

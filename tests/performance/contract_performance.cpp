// Contract kernels beside the FMA peak of the machine, one thread, as JSON. The best of many runs: other programs only take time away.
//     contract_performance [substring of the cases to run]
#include "ir/text.h"
#include "kernels/compiled_kernel.h"
#include "performance/peak.h"
#include <cstdio>
#include <cstring>
#include <ctime>

namespace scalide::performance {
namespace {

struct Case {
    const char *name;
    int m, n, k;
    const char *lhs, *rhs, *contract, *dtype;
    const char *tail = ""; ///< what follows z, ending in `out`
};

constexpr const char *bias_relu = "  b = broadcast_in_dim(bias) {dims: [1]} : f32[M, N]\n"
                                  "  s = add(z, b) : f32[M, N]\n"
                                  "  zero = constant() {value: 0} : f32[]\n"
                                  "  zeros = broadcast_in_dim(zero) {dims: []} : f32[M, N]\n"
                                  "  out = max(s, zeros) : f32[M, N]\n";
constexpr const char *nothing = "  out = neg(z) : f32[M, N]\n";

// The matmuls of an MLP step 784-512-512-10 with batch 128: forward, data gradients, weight gradients.
const Case cases[] = {
    {"forward 784 f32", 128, 512, 784, "M, K", "K, N", "[[1], [0]]", "f32", bias_relu},
    {"forward 784 f32 symbolic batch", -128, 512, 784, "M, K", "K, N", "[[1], [0]]", "f32", bias_relu},
    {"forward 512 f32", 128, 512, 512, "M, K", "K, N", "[[1], [0]]", "f32", bias_relu},
    {"backward 512 f32", 128, 512, 512, "M, K", "N, K", "[[1], [1]]", "f32", nothing},
    {"backward 512 f32 symbolic batch", -128, 512, 512, "M, K", "N, K", "[[1], [1]]", "f32", nothing},
    {"weights 784 f32", 784, 512, 128, "K, M", "K, N", "[[0], [0]]", "f32", nothing},
    {"weights 784 f32 symbolic batch", 784, 512, -128, "K, M", "K, N", "[[0], [0]]", "f32", nothing},
    {"head f32", 128, 10, 512, "M, K", "K, N", "[[1], [0]]", "f32", bias_relu},
    {"head weights f32", 512, 10, 128, "K, M", "K, N", "[[0], [0]]", "f32", nothing},
    {"head backward f32", 128, 512, 10, "M, K", "N, K", "[[1], [1]]", "f32", nothing},
    {"forward 784 bf16", 128, 512, 784, "M, K", "K, N", "[[1], [0]]", "bf16", bias_relu},
    {"backward 512 bf16", 128, 512, 512, "M, K", "N, K", "[[1], [1]]", "bf16", nothing},
    {"weights 784 bf16", 784, 512, 128, "K, M", "K, N", "[[0], [0]]", "bf16", nothing},
    {"forward 784 f16", 128, 512, 784, "M, K", "K, N", "[[1], [0]]", "f16", bias_relu},
    {"forward 784 f8", 128, 512, 784, "M, K", "K, N", "[[1], [0]]", "f8_e4m3fn", bias_relu},
    {"backward 512 f8", 128, 512, 512, "M, K", "N, K", "[[1], [1]]", "f8_e4m3fn", nothing},
    {"weights 784 f8", 784, 512, 128, "K, M", "K, N", "[[0], [0]]", "f8_e4m3fn", nothing},
    {"square 1024 f32", 1024, 1024, 1024, "M, K", "K, N", "[[1], [0]]", "f32", nothing},
    {"square 1024 bf16", 1024, 1024, 1024, "M, K", "K, N", "[[1], [0]]", "bf16", nothing},
    {"odd f32", 100, 300, 333, "M, K", "K, N", "[[1], [0]]", "f32", bias_relu},
    {"odd f32 all symbolic", -100, -300, -333, "M, K", "K, N", "[[1], [0]]", "f32", bias_relu},
};

/// Puts an extent in the place of its letter: a number, or a symbol when it is negative.
std::string with_extents(std::string text, const Case &c) {
    const std::pair<char, int> extents[] = {{'M', c.m}, {'N', c.n}, {'K', c.k}};
    for (const auto &[letter, extent] : extents) {
        for (size_t at; (at = text.find(letter)) != std::string::npos;) {
            text.replace(at, 1, extent < 0 ? std::string(1, char(letter - 'A' + 'a')) : std::to_string(extent));
        }
    }
    return text;
}

std::string text_of(const Case &c) {
    const std::string dtype = c.dtype, lhs = c.lhs, rhs = c.rhs;
    const bool widens = dtype != "f32";
    std::string text = "program p {kind: contract} (x: " + dtype + "[" + lhs + "], y: " + dtype + "[" + rhs + "]" +
                       (c.tail == bias_relu ? ", bias: f32[N]" : "") + ") -> (out: f32[M, N]) {\n";
    text += widens ? "  a = convert_element_type(x) : f32[" + lhs + "]\n  c = convert_element_type(y) : f32[" + rhs + "]\n" : "";
    text +=
        std::string("  z = dot_general(") + (widens ? "a, c" : "x, y") + ") {contract: " + c.contract + "} : f32[M, N]\n" + c.tail + "}\n";
    return with_extents(text, c);
}

/// Time of this thread: what other programs take is not counted.
double seconds() {
    timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return double(time.tv_sec) + 1e-9 * double(time.tv_nsec);
}

/// Best GFLOP/s within about 0.7 s.
double measure(const Case &c) {
    CompiledKernel kernel(parse_program(text_of(c), c.name));
    const Extent::Bindings symbols = {{"m", std::abs(c.m)}, {"n", std::abs(c.n)}, {"k", std::abs(c.k)}};
    std::vector<std::vector<float>> memory;
    std::vector<void *> operands;
    for (const KernelOperand &operand : call_order(kernel.lowered())) {
        memory.emplace_back(size_t(element_count(operand.type.shape).evaluate(symbols)) + 16, 0.0f);
        operands.push_back(memory.back().data());
    }
    double best = 1e9;
    for (const double end = seconds() + 0.7; seconds() < end;) {
        const double start = seconds();
        kernel.call(operands, symbols);
        best = std::min(best, seconds() - start);
    }
    return 2e-9 * std::abs(double(c.m) * c.n * c.k) / best;
}

} // namespace

int run(const char *filter) {
    const char *separator = "";
    printf("[");
    for (const Case &c : cases) {
        if (!std::strstr(c.name, filter)) {
            continue;
        }
        const double rate = measure(c), peak = measure_fma_peak();
        printf("%s\n {\"case\": \"%s\", \"m\": %d, \"n\": %d, \"k\": %d, \"gflops\": %.1f, \"fma_peak\": %.1f, \"ratio\": %.3f}", separator,
               c.name, std::abs(c.m), std::abs(c.n), std::abs(c.k), rate, peak, rate / peak);
        fflush(stdout);
        separator = ",";
    }
    printf("\n]\n");
    return 0;
}

} // namespace scalide::performance

int main(int argc, char **argv) { return scalide::performance::run(argc > 1 ? argv[1] : ""); }

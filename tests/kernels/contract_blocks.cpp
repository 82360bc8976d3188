#include "kernels/contract_cases.h"
#include <cmath>
#include <gtest/gtest.h>

// Operands of f8 codes, each block of which along the contracted axis has a scale (scaled_dot_general). The reference is f64, element by
// element. A sum of n terms may differ by (n + 4) * 2^-24 times the sum of their magnitudes: one rounding for each addition in f32, and
// those of scales and products.

namespace scalide::contract_test {
namespace {

struct BlockCase {
    std::string name, lhs_scale, rhs_scale; ///< dtypes of the scales; empty: the operand has none
    int64_t lhs_block = 32, rhs_block = 32;
    int64_t cut = 0; ///< elements of the last block that are cut off
    friend void PrintTo(const BlockCase &each, std::ostream *out) { *out << each.name; }
};

/// One operand: codes [b, rows, blocks, block], or with the rows last, and scales with block 1.
struct BlockedOperand {
    std::string name, code, scale, rows;
    int64_t block, blocks, cut;
    bool transposed, batched;

    int64_t depth() const { return block * blocks - cut; }
    std::string shape(int64_t of_block) const {
        const std::string split = std::to_string(blocks) + ", " + std::to_string(of_block);
        return std::string(batched ? "[b, " : "[") + (transposed ? split + ", " + rows : rows + ", " + split) + "]";
    }
    std::string flat(int64_t depth) const {
        const std::string k = std::to_string(depth);
        return std::string(batched ? "[b, " : "[") + (transposed ? k + ", " + rows : rows + ", " + k) + "]";
    }
    std::string arguments() const {
        return name + ": " + code + shape(block) + (scale.empty() ? "" : ", s" + name + ": " + scale + shape(1));
    }
    /// Defines `<name>f`, the operand with one contracted axis.
    std::string lines() const {
        const std::string axes = batched ? "[0, 1, 2, 3]" : "[0, 1, 2]";
        std::string text, value = name + "w", cast = "convert_element_type";
        text += "  " + value + " = " + cast + "(" + name + ") : f32" + shape(block) + "\n";
        if (!scale.empty()) {
            const std::string factor = "s" + name + (scale == "f32" ? "" : "w");
            if (scale != "f32") text += "  " + factor + " = " + cast + "(s" + name + ") : f32" + shape(1) + "\n";
            text += "  " + name + "b = broadcast_in_dim(" + factor + ") {dims: " + axes + ", shape: " + shape(block) + "} : f32" +
                    shape(block) + "\n  " + name + "p = mul(" + value + ", " + name + "b) : f32" + shape(block) + "\n";
            value = name + "p";
        }
        const std::string whole = flat(block * blocks);
        text += "  " + name + (cut ? "r" : "f") + " = reshape(" + value + ") {shape: " + whole + "} : f32" + whole + "\n";
        if (!cut) return text;
        const int axis = int(batched) + !transposed;
        std::string zeros, ends;
        for (int i = 0; i < 2 + batched; i++) {
            zeros += i ? ", 0" : "0";
            ends += (i ? ", " : "") + (i == axis ? std::to_string(depth()) : i == 0 && batched ? "b" : rows);
        }
        return text + "  " + name + "f = slice(" + name + "r) {start: [" + zeros + "], limit: [" + ends + "], strides: []} : f32" +
               flat(depth()) + "\n";
    }
    /// Multiplies codes by scales, and removes what is cut off.
    Doubles scaled(const Doubles &codes, const Doubles &scales, int64_t batch, int64_t count) const {
        Doubles result;
        for (int64_t i = 0; i < batch * count * block * blocks; i++) {
            const int64_t all = block * blocks, outer = transposed ? i / (all * count) : i / all;
            const int64_t k = transposed ? i / count % all : i % all, row = transposed ? i % count : 0;
            const int64_t at = transposed ? (outer * blocks + k / block) * count + row : outer * blocks + k / block;
            if (k < depth()) result.push_back(codes[size_t(i)] * (scale.empty() ? 1 : scales[size_t(at)]));
        }
        return result;
    }
};

class Blocks : public testing::TestWithParam<BlockCase> {
protected:
    /// Orders: 0 is NN, 1 TN, 2 NT, 3 TT, 4 to 7 the same with a batch.
    void expect_products(int64_t depth, std::initializer_list<int> orders) {
        const bool any_scales = GetParam().lhs_scale == "f32" && GetParam().rhs_scale == "f32";
        for (const int order : orders) {
            const bool batched = order & 4;
            const auto operand = [&](const char *name, const char *code, const std::string &scale, const char *rows, int64_t block,
                                     bool turned) {
                return BlockedOperand{name, code, scale, rows, block, depth / block, GetParam().cut, turned, batched};
            };
            const BlockedOperand x = operand("x", "f8_e4m3fn", GetParam().lhs_scale, "m", GetParam().lhs_block, order & 1),
                                 y = operand("y", "f8_e5m2", GetParam().rhs_scale, "n", GetParam().rhs_block, !(order & 2));
            SCOPED_TRACE(text(x, y));
            const CompiledKernel kernel(parse_program(text(x, y), "k"));
            for (const auto &[m, n] : std::vector<std::array<int64_t, 2>>{{1, 1}, {7, 70}, {33, 15}}) {
                const Product product{batched ? 2 : 1, m, n, x.depth(), x.transposed, !y.transposed};
                expect_product(kernel, x, y, product, true);
                if (any_scales) expect_product(kernel, x, y, product, false);
            }
        }
    }

    static int64_t largest_block() { return std::max(GetParam().lhs_block, GetParam().rhs_block); }

    static std::string text(const BlockedOperand &x, const BlockedOperand &y) {
        const int first = x.batched;
        return "program k {kind: contract} (" + x.arguments() + ", " + y.arguments() + ") -> (z: f32" +
               (x.batched ? "[b, m, n]" : "[m, n]") + ") {\n" + x.lines() + y.lines() + "  z = dot_general(xf, yf) {contract: [[" +
               std::to_string(first + !x.transposed) + "], [" + std::to_string(first + !y.transposed) +
               "]], batch: " + (x.batched ? "[[0], [0]]" : "[[], []]") + ", preferred: f32} : f32" + (x.batched ? "[b, m, n]" : "[m, n]") +
               "\n}\n";
    }

private:
    static Doubles draw_scales(size_t count, bool powers_of_two, std::mt19937 &random) {
        Doubles scales(count);
        for (double &scale : scales)
            scale = powers_of_two ? std::ldexp(1, int(random() % 7) - 3) : double(float(std::uniform_real_distribution<>(0.1, 3)(random)));
        return scales;
    }

    static void expect_product(const CompiledKernel &kernel, const BlockedOperand &x, const BlockedOperand &y, const Product &p,
                               bool powers_of_two) {
        std::mt19937 random(uint32_t(p.m * 10007 + p.n * 101 + p.k));
        std::vector<Words> words;
        const auto draw = [&](const BlockedOperand &operand, int64_t rows) {
            const size_t blocks = size_t(p.batch * rows * operand.blocks);
            const Doubles codes = random_integers(blocks * size_t(operand.block), 4, random),
                          scales = draw_scales(blocks, powers_of_two, random);
            words.push_back(to_words(codes, dtype_named(operand.code)));
            if (!operand.scale.empty()) words.push_back(to_words(scales, dtype_named(operand.scale)));
            return operand.scaled(codes, scales, p.batch, rows);
        };
        Doubles a = draw(x, p.m), b = draw(y, p.n);
        const Doubles expected = multiply(p, a, b);
        for (Doubles *values : {&a, &b})
            for (double &value : *values) value = std::abs(value);
        const Doubles magnitudes = multiply(p, a, b);
        const Doubles got = to_doubles(kernel.run(words, {{"b", p.batch}, {"m", p.m}, {"n", p.n}})[0], Dtype::f32);
        ASSERT_EQ(got.size(), expected.size());
        for (size_t i = 0; i < got.size(); i++) {
            const double allowed = powers_of_two ? 0 : double(p.k + 4) * 0x1p-24 * magnitudes[i];
            ASSERT_LE(std::abs(got[i] - expected[i]), allowed) << "m " << p.m << " n " << p.n << " at " << i;
        }
    }
};

TEST_P(Blocks, one_block) { expect_products(largest_block(), {0, 1, 2, 3}); }

TEST_P(Blocks, many_blocks) { expect_products(3 * largest_block(), {0, 3, 5, 6}); }

TEST_P(Blocks, more_than_one_sum_holds) { expect_products(1280, {2}); }

INSTANTIATE_TEST_SUITE_P(contract, Blocks,
                         testing::Values(BlockCase{"powers_of_two", "f8_e8m0fnu", "f8_e8m0fnu"},
                                         BlockCase{"powers_of_two_cut", "f8_e8m0fnu", "f8_e8m0fnu", 32, 32, 19},
                                         BlockCase{"one_scaled", "", "f8_e8m0fnu"}, BlockCase{"f32", "f32", "f32", 128, 128},
                                         BlockCase{"f32_cut", "f32", "f32", 64, 64, 27},
                                         BlockCase{"f32_and_powers", "f32", "f8_e8m0fnu", 128, 32},
                                         BlockCase{"unequal", "f32", "f32", 128, 64}, BlockCase{"small", "f32", "f32", 4, 4}),
                         [](const auto &info) { return info.param.name; });

} // namespace
} // namespace scalide::contract_test

#include "card/card.h"
#include <gtest/gtest.h>
#include <random>

// card.products.*: products of small integers, whose sums every format of the sums holds, so that the card and the CPU must agree in every
// bit whoever computes them: cuBLASLt, or a kernel where it cannot.

namespace scalide {

namespace {

struct Types {
    Dtype lhs, rhs, out;
};

/// Axes of matrices `[rows, columns]` in memory: which one the product sums over.
struct Form {
    const char *name;
    int lhs_axis, rhs_axis;
};

struct Size {
    int64_t batch, m, k, n;
};

constexpr Types types[] = {
    {Dtype::f32, Dtype::f32, Dtype::f32},
    {Dtype::f16, Dtype::f16, Dtype::f32},
    {Dtype::f16, Dtype::f16, Dtype::f16},
    {Dtype::bf16, Dtype::bf16, Dtype::f32},
    {Dtype::bf16, Dtype::bf16, Dtype::bf16},
    {Dtype::f8_e4m3fn, Dtype::f8_e4m3fn, Dtype::f32},
    {Dtype::f8_e4m3fn, Dtype::f8_e4m3fn, Dtype::f16},
    {Dtype::f8_e4m3fn, Dtype::f8_e4m3fn, Dtype::bf16},
    {Dtype::f8_e4m3fn, Dtype::f8_e4m3fn, Dtype::f8_e4m3fn},
    {Dtype::f8_e4m3fn, Dtype::f8_e5m2, Dtype::f32},
    {Dtype::f8_e4m3fn, Dtype::f8_e5m2, Dtype::bf16},
    {Dtype::f8_e5m2, Dtype::f8_e4m3fn, Dtype::f32},
    {Dtype::f8_e5m2, Dtype::f8_e4m3fn, Dtype::f16},
    {Dtype::f8_e5m2, Dtype::f8_e4m3fn, Dtype::f8_e5m2},
    {Dtype::f8_e5m2, Dtype::f8_e5m2, Dtype::f32}, // as bf16, as are f8 operands beside it
    {Dtype::bf16, Dtype::f8_e4m3fn, Dtype::bf16},
    {Dtype::f8_e5m2, Dtype::f16, Dtype::f16},
};
constexpr Form forms[] = {{"nn", 1, 0}, {"nt", 1, 1}, {"tn", 0, 0}, {"tt", 0, 1}};
/// The last ones are not multiples of 16, which FP8 asks for.
constexpr Size sizes[] = {{1, 16, 32, 48}, {1, 128, 256, 64}, {3, 32, 64, 16}, {1, 17, 33, 9}, {2, 1, 100, 7}};

std::string word(Dtype dtype) { return std::string(to_string(dtype)); }

std::vector<int64_t> shape_of(const Size &size, int64_t free, int sum_axis) {
    std::vector<int64_t> shape = sum_axis == 0 ? std::vector<int64_t>{size.k, free} : std::vector<int64_t>{free, size.k};
    if (size.batch > 1) shape.insert(shape.begin(), size.batch);
    return shape;
}

std::string type_text(Dtype dtype, const std::vector<int64_t> &shape) {
    std::string text;
    for (const int64_t extent : shape) text += (text.empty() ? "" : ", ") + std::to_string(extent);
    return word(dtype) + "[" + text + "]";
}

/// y = (x * w) * s + bias, stored as types.out.
std::string program_of(const Types &types, const Form &form, const Size &size) {
    const int first = size.batch > 1 ? 1 : 0;
    std::vector<int64_t> out = {size.m, size.n};
    if (first > 0) out.insert(out.begin(), size.batch);
    const std::string wide = type_text(Dtype::f32, out), shape = wide.substr(3);
    const std::string batch = first > 0 ? "batch: [[0], [0]], " : "";
    const std::string contract = "[[" + std::to_string(form.lhs_axis + first) + "], [" + std::to_string(form.rhs_axis + first) + "]]";
    std::string text = "program product(x: " + type_text(types.lhs, shape_of(size, size.m, form.lhs_axis)) +
                       ", w: " + type_text(types.rhs, shape_of(size, size.n, form.rhs_axis)) +
                       ", s: f32[], bias: " + type_text(Dtype::f32, {size.n}) + ") -> (y: " + type_text(types.out, out) + ") {\n";
    text += " a = convert_element_type(x) {dtype: f32}\n b = convert_element_type(w) {dtype: f32}\n";
    text += " sums = dot_general(a, b) {" + batch + "contract: " + contract + "}\n scaled = mul(sums, s)\n";
    text += " row = broadcast_in_dim(bias) {shape: " + shape + ", dims: [" + std::to_string(first + 1) + "]}\n wide = add(scaled, row)\n";
    // What the library does: f8 saturates, the others do not.
    const char *overflow = size_of(types.out) == 1 ? ", overflow: saturate" : ", overflow: format";
    return text + " y = convert_element_type(wide) {dtype: " + word(types.out) + overflow + "}\n}\n";
}

/// Integers from -2 to 2: 256 products add up to less than 2^11, which f16 holds.
HostArray integers(const std::string &name, Dtype dtype, const std::vector<int64_t> &shape, unsigned seed) {
    std::mt19937 random(seed);
    Array array{dtype, shape, {}};
    int64_t count = 1;
    for (const int64_t extent : shape) count *= extent;
    for (int64_t i = 0; i < count; i++) array.data.push_back(static_cast<double>(random() % 5) - 2);
    return to_array(name, array);
}

using Case = std::tuple<Types, Form, Size>;

class products : public testing::TestWithParam<Case> {};

std::string name_of(const testing::TestParamInfo<Case> &info) {
    const auto &[types, form, size] = info.param;
    return word(types.lhs) + "_" + word(types.rhs) + "_" + word(types.out) + "_" + form.name + "_" + std::to_string(size.batch) + "_" +
           std::to_string(size.m) + "_" + std::to_string(size.k) + "_" + std::to_string(size.n);
}

} // namespace

TEST_P(products, of_small_integers) {
    if (!why_no_card().empty()) GTEST_SKIP() << why_no_card();
    const auto &[types, form, size] = GetParam();
    const OnBoth program(program_of(types, form, size));
    EXPECT_EQ(program.first_difference({integers("x", types.lhs, shape_of(size, size.m, form.lhs_axis), 1),
                                        integers("w", types.rhs, shape_of(size, size.n, form.rhs_axis), 2),
                                        to_array("s", {Dtype::f32, {}, {0.5}}), integers("bias", Dtype::f32, {size.n}, 3)}),
              "");
}

/// D is C: an argument in whose place the sum is stored, added to what stood there.
TEST(products_in_place, of_small_integers) {
    if (!why_no_card().empty()) GTEST_SKIP() << why_no_card();
    const OnBoth program(R"(program accumulation(x: bf16[32, 64], w: bf16[64, 48], y: f32[32, 48] inout, r: f32[]) -> (y = sum) {
 a = convert_element_type(x) {dtype: f32}
 b = convert_element_type(w) {dtype: f32}
 product = dot_general(a, b) {contract: [[1], [0]]}
 kept = mul(y, r)
 sum = add(kept, product)
})");
    EXPECT_EQ(program.first_difference({integers("x", Dtype::bf16, {32, 64}, 1), integers("w", Dtype::bf16, {64, 48}, 2),
                                        integers("y", Dtype::f32, {32, 48}, 3), to_array("r", {Dtype::f32, {}, {2}})}),
              "");
}

INSTANTIATE_TEST_SUITE_P(, products, testing::Combine(testing::ValuesIn(types), testing::ValuesIn(forms), testing::ValuesIn(sizes)),
                         name_of);

} // namespace scalide

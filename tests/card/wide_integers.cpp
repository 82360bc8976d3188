#include "card/card.h"
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>

// card.wide_integers.*: i64 arrays on the GPU and on the CPU, bit for bit.

namespace scalide {

namespace {

HostArray array_of(const std::string &name, const std::vector<int64_t> &shape, const std::vector<int64_t> &numbers) {
    HostArray array{name, Dtype::i64, shape, {}, false, 1};
    array.data.resize(numbers.size() * sizeof(int64_t));
    std::memcpy(array.data.data(), numbers.data(), array.data.size());
    return array;
}

HostArray floats_of(const std::string &name, const std::vector<int64_t> &shape, const std::vector<float> &numbers) {
    HostArray array{name, Dtype::f32, shape, {}, false, 1};
    array.data.resize(numbers.size() * sizeof(float));
    std::memcpy(array.data.data(), numbers.data(), array.data.size());
    return array;
}

const std::vector<int64_t> numbers{0,
                                   1,
                                   -1,
                                   7,
                                   -8,
                                   8,
                                   INT32_MAX,
                                   int64_t{1} << 31,
                                   INT32_MIN,
                                   (int64_t{1} << 32) + 3,
                                   (int64_t{1} << 53) + 1,
                                   -(int64_t{1} << 53) - 1,
                                   (int64_t{1} << 60) + (int64_t{1} << 36),
                                   (int64_t{1} << 62) + 1,
                                   INT64_MAX,
                                   INT64_MIN};
const auto count = static_cast<int64_t>(numbers.size());

class wide_integers : public testing::Test {
protected:
    void SetUp() override {
        if (!why_no_card().empty()) GTEST_SKIP() << why_no_card();
    }
};

} // namespace

TEST_F(wide_integers, are_moved_compared_and_converted) {
    const OnBoth program(
        R"(program moved(i: i64[n], j: i64[n]) -> (both: i64[2*n], less: bool[n], chosen: i64[n], bounded: i64[n], low: i32[n],
    f: f32[n], b: bf16[n]) {
  both = concatenate(i, j) {dimension: 0}
  less = lt(i, j)
  chosen = select_n(less, i, j)
  bounded = clamp(-4294967296, i, 1099511627776)
  low = convert_element_type(i) {dtype: i32}
  f = convert_element_type(i) {dtype: f32}
  b = convert_element_type(i) {dtype: bf16}
}
)");
    const std::vector<int64_t> reversed(numbers.rbegin(), numbers.rend());
    EXPECT_EQ(program.first_difference({array_of("i", {count}, numbers), array_of("j", {count}, reversed)}), "");
}

TEST_F(wide_integers, come_from_floats) {
    const OnBoth program("program wide(f: f32[n]) -> (i: i64[n]) {\n  i = convert_element_type(f) {dtype: i64}\n}\n");
    const std::vector<float> floats{1.9f, -1.9f, 0x1p31f, -0x1p40f, 0x1p62f, 0x1p63f, 1e30f, -1e30f, INFINITY, -INFINITY, NAN, 0};
    EXPECT_EQ(program.first_difference({floats_of("f", {std::ssize(floats)}, floats)}), "");
}

TEST_F(wide_integers, are_indices) {
    const OnBoth program(R"(program indexed(x: f32[8, 3], i: i64[n, 1]) -> (rows: f32[n, 3], summed: f32[8, 3]) {
  flat = reshape(i) {shape: [n]}
  rows = take(x, flat) {axis: 0}
  summed = scatter_add(x, i, rows) {update_window_dims: [1], inserted_window_dims: [0], scatter_dims_to_operand_dims: [0]}
}
)");
    std::vector<float> x;
    for (int i = 0; i < 24; i++) x.push_back(static_cast<float>(i));
    EXPECT_EQ(program.first_difference({floats_of("x", {8, 3}, x), array_of("i", {count, 1}, numbers)}), "");
}

} // namespace scalide

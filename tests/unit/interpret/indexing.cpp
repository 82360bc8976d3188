#include "fixture.h"
#include <cmath>
#include <gtest/gtest.h>
#include <limits>

// Expected values are those of JAX 0.10.2 on the CPU.

namespace scalide {

namespace {

using Numbers = std::vector<double>;
constexpr double infinity = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();

const Array counted = f32_array({3, 4}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
const std::string rows = "update_window_dims: [1], inserted_window_dims: [0], scatter_dims_to_operand_dims: [0], ";

/// NaN as the number 999, so that lists compare.
Numbers comparable(Numbers values) {
    for (double &value : values) value = std::isnan(value) ? 999 : value;
    return values;
}

Numbers gather(const Array &indices, const std::string &dims, const std::string &result) {
    const Type type{Dtype::i32, {indices.shape.begin(), indices.shape.end()}};
    return comparable(run_one("program p(x: f32[3, 4], i: " + to_string(type) + ") -> (y: " + result + ") {\n  y = gather(x, i) {" + dims +
                                  "} : " + result + "\n}\n",
                              {counted, indices}));
}

Numbers scatter(const std::string &op, const std::string &mode, const Numbers &places) {
    const std::string text = "program p(x: f32[3, 4], i: i32[2, 1], u: f32[2, 4]) -> (y: f32[3, 4]) {\n  y = " + op + "(x, i, u) {" + rows +
                             "mode: " + mode + "} : f32[3, 4]\n}\n";
    return run_one(text, {counted, i32_array({2, 1}, places), f32_array({2, 4}, {1, 2, 3, 4, 5, 6, 7, 8})});
}

Numbers scan(const std::string &op, const std::string &reverse, const Numbers &x) {
    const std::string n = "[" + std::to_string(x.size()) + "]";
    return comparable(run_one("program p(x: f32" + n + ") -> (y: f32" + n + ") {\n  y = " + op + "(x) {axis: 0, reverse: " + reverse +
                                  "} : f32" + n + "\n}\n",
                              {f32_array({static_cast<int64_t>(x.size())}, x)}));
}

Numbers order(const Numbers &keys, const std::string &descending) {
    const std::string n = "[" + std::to_string(keys.size()) + "]";
    return run_one("program p(x: f32" + n + ") -> (y: i32" + n + ") {\n  y = argsort(x) {dimension: 0, descending: " + descending +
                       "} : i32" + n + "\n}\n",
                   {f32_array({static_cast<int64_t>(keys.size())}, keys)});
}

} // namespace

TEST(interpret, gather_moves_windows_inside_or_fills) {
    const Array places = i32_array({3, 2}, {0, 1, 3, -1, 2, 2});
    const std::string dims = "offset_dims: [0, 2], collapsed_slice_dims: [], start_index_map: [1, 0], slice_sizes: [2, 2], ";
    EXPECT_EQ(gather(places, dims + "mode: clip, fill_value: nan", "f32[2, 3, 2]"), (Numbers{5, 6, 3, 4, 7, 8, 9, 10, 7, 8, 11, 12}));
    EXPECT_EQ(gather(places, dims + "mode: fill_or_drop, fill_value: nan", "f32[2, 3, 2]"),
              (Numbers{5, 6, 999, 999, 999, 999, 9, 10, 999, 999, 999, 999}));
}

TEST(interpret, gather_goes_along_batching_axes) {
    EXPECT_EQ(gather(i32_array({3, 2, 1}, {0, 3, 1, 1, 9, 2}),
                     "offset_dims: [], collapsed_slice_dims: [1], start_index_map: [1], operand_batching_dims: [0], "
                     "start_indices_batching_dims: [0], slice_sizes: [1, 1], mode: fill_or_drop, fill_value: nan",
                     "f32[3, 2]"),
              (Numbers{1, 4, 6, 6, 999, 11}));
}

TEST(interpret, scatters_combine_in_order) {
    const Numbers twice{1, 1};
    EXPECT_EQ(scatter("scatter", "clip", twice), (Numbers{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}));
    EXPECT_EQ(scatter("scatter_add", "clip", twice), (Numbers{1, 2, 3, 4, 11, 14, 17, 20, 9, 10, 11, 12}));
    EXPECT_EQ(scatter("scatter_mul", "clip", twice), (Numbers{1, 2, 3, 4, 25, 72, 147, 256, 9, 10, 11, 12}));
    EXPECT_EQ(scatter("scatter_min", "clip", twice), (Numbers{1, 2, 3, 4, 1, 2, 3, 4, 9, 10, 11, 12}));
    EXPECT_EQ(scatter("scatter_max", "clip", twice), (Numbers{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}));
}

TEST(interpret, scatter_drops_what_is_out_of_bounds) {
    EXPECT_EQ(scatter("scatter", "clip", {2, 5}), (Numbers{1, 2, 3, 4, 5, 6, 7, 8, 5, 6, 7, 8}));
    EXPECT_EQ(scatter("scatter", "fill_or_drop", {2, 5}), (Numbers{1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4}));
}

TEST(interpret, scatter_drops_a_window_that_is_partly_outside) {
    const std::string text =
        "program p(x: f32[3, 4], i: i32[3, 2], u: f32[2, 3]) -> (y: f32[3, 4]) {\n  y = scatter_add(x, i, u) "
        "{update_window_dims: [0], inserted_window_dims: [0], scatter_dims_to_operand_dims: [1, 0], mode: fill_or_drop} "
        ": f32[3, 4]\n}\n";
    EXPECT_EQ(run_one(text, {counted, i32_array({3, 2}, {1, 0, 3, 2, 2, 1}), f32_array({2, 3}, {1, 2, 3, 4, 5, 6})}),
              (Numbers{1, 3, 7, 4, 5, 6, 10, 14, 9, 10, 11, 12}));
}

TEST(interpret, scans_keep_special_values) {
    EXPECT_EQ(scan("cumlogsumexp", "false", {-infinity, -infinity, 0}), (Numbers{-infinity, -infinity, 0}));
    EXPECT_EQ(scan("cumlogsumexp", "false", {infinity, infinity, 0}), (Numbers{infinity, infinity, infinity}));
    EXPECT_EQ(scan("cummax", "false", {1, nan, 2}), (Numbers{1, 999, 999}));
    EXPECT_EQ(scan("cumsum", "true", {1, 2, 4}), (Numbers{7, 6, 4}));
    EXPECT_EQ(scan("cumprod", "false", {}), Numbers{});
}

TEST(interpret, argsort_orders_nan_last_and_zeros_as_one) {
    const Numbers keys{3, -0.0, nan, 0, -infinity, 3, infinity, -1};
    EXPECT_EQ(order(keys, "false"), (Numbers{4, 7, 1, 3, 0, 5, 6, 2}));
    EXPECT_EQ(order(keys, "true"), (Numbers{2, 6, 0, 5, 1, 3, 7, 4}));
}

TEST(interpret, argsort_takes_the_first_key_that_differs) {
    EXPECT_EQ(
        run_one("program p(x: i32[4], y: f32[4]) -> (o: i32[4]) {\n  o = argsort(x, y) {dimension: 0, descending: false} : i32[4]\n}\n",
                {i32_array({4}, {1, 0, 1, 0}), f32_array({4}, {2, 1, 1, 1})}),
        (Numbers{1, 3, 2, 0}));
}

} // namespace scalide

#include "card/bound.h"
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <gtest/gtest.h>

// card.bindings.*: what applications do with a binding on a GPU: runs, graphs, other arrays, several contexts, failures. Numbers are small
// integers, so that results are exact.

namespace scalide {

namespace {

const char *const step_text = R"(program step(w: f32[n] inout, x: f32[n]) -> (y: f32[n], w = w2) {
  w2 = add(w, x)
  y = mul(w2, 2.0)
}
)";

class bindings : public testing::Test {
protected:
    void SetUp() override {
        if (!why_no_card().empty()) GTEST_SKIP() << why_no_card();
    }
};
using Floats = std::vector<float>;

} // namespace

TEST_F(bindings, run_twice_and_go_on_as_a_graph) {
    const auto compiled = compile_for_card(step_text);
    Bound bound(*compiled, SCALIDE_CUDA);
    ASSERT_EQ(bound.bind({bound.floats({1, 2, 3, 4, 5}), bound.floats({1, 1, 2, 2, 3}), bound.floats(Floats(5, NAN))}), SCALIDE_OK)
        << scalide_message(bound.context());
    bound.run();
    bound.run();
    EXPECT_EQ(bound.read(0), (Floats{3, 4, 7, 8, 11}));
    ASSERT_EQ(scalide_capture(bound.binding()), SCALIDE_OK) << scalide_message(bound.context());
    for (int repeat = 0; repeat < 3; repeat++) bound.run();
    EXPECT_EQ(bound.read(0), (Floats{6, 7, 13, 14, 20}));
    EXPECT_EQ(bound.read(2), (Floats{12, 14, 26, 28, 40}));
}

TEST_F(bindings, take_other_arrays_before_and_after_capture) {
    const auto compiled = compile_for_card(step_text);
    Bound bound(*compiled, SCALIDE_CUDA);
    ASSERT_EQ(bound.bind({bound.floats({1, 2, 3}), bound.floats({1, 1, 1}), bound.floats(Floats(3, NAN))}), SCALIDE_OK);
    bound.run();
    bound.set(1, bound.floats({10, 20, 30}));
    bound.run();
    EXPECT_EQ(bound.read(2), (Floats{24, 46, 68}));
    ASSERT_EQ(scalide_capture(bound.binding()), SCALIDE_OK);
    bound.set(1, bound.floats({100, 100, 100}));
    bound.set(2, bound.floats(Floats(3, NAN)));
    bound.run();
    EXPECT_EQ(bound.read(2), (Floats{224, 246, 268}));
}

TEST_F(bindings, have_extents_of_0_and_1_and_more) {
    const auto compiled = compile_for_card(step_text);
    for (const size_t count : {0, 1, 2, 31, 1025}) {
        Bound bound(*compiled, SCALIDE_CUDA);
        ASSERT_EQ(bound.bind({bound.floats(Floats(count, 3)), bound.floats(Floats(count, 4)), bound.floats(Floats(count, NAN))}),
                  SCALIDE_OK)
            << count << ' ' << scalide_message(bound.context());
        bound.run();
        EXPECT_EQ(bound.read(2), Floats(count, 14)) << count;
    }
}

TEST_F(bindings, of_two_contexts_do_not_meet) {
    const auto compiled = compile_for_card(step_text);
    Bound first(*compiled, SCALIDE_CUDA), second(*compiled, SCALIDE_CUDA);
    ASSERT_EQ(first.bind({first.floats({1}), first.floats({1}), first.floats({NAN})}), SCALIDE_OK);
    ASSERT_EQ(second.bind({second.floats({5}), second.floats({2}), second.floats({NAN})}), SCALIDE_OK);
    for (int repeat = 0; repeat < 3; repeat++) {
        first.run();
        second.run();
    }
    EXPECT_EQ(first.read(0), Floats{4});
    EXPECT_EQ(second.read(0), Floats{11});
}

TEST_F(bindings, go_on_after_memory_is_refused) {
    const auto compiled = compile_for_card(step_text);
    Bound bound(*compiled, SCALIDE_CUDA);
    ASSERT_EQ(bound.bind({bound.floats({1}), bound.floats({1}), bound.floats({NAN})}), SCALIDE_OK);
    void *memory = nullptr;
    EXPECT_EQ(scalide_allocate(bound.context(), size_t{1} << 50, &memory), SCALIDE_OUT_OF_MEMORY);
    EXPECT_EQ(memory, nullptr);
    bound.run();
    EXPECT_EQ(bound.read(2), Floats{4});
}

/// 24 sorted tables that are all there before the first is read. For 46,000 rows each has 8.5 GB, which is more than a GPU has together.
TEST_F(bindings, go_on_after_a_bind_that_needs_too_much_memory) {
    std::string arguments, tables, rows;
    for (int i = 0; i < 24; i++) { // one kernel text each for all tables and for all sums
        const std::string k = std::to_string(i), before = i == 0 ? "x" : "t" + std::to_string(i - 1);
        arguments += ", w" + k + ": f32[n]";
        tables += "  b" + k + " = broadcast_in_dim(w" + k + ") {dims: [1], shape: [n, n]}\n  p" + k + " = mul(a, b" + k + ")\n  s" + k +
                  " = sort(p" + k + ")\n";
        rows += "  r" + k + " = reduce_max(s" + k + ") {axes: [1]}\n  t" + k + " = add(" + before + ", r" + k + ")\n";
    }
    const auto compiled =
        compile_for_card("program tables(x: f32[n]" + arguments +
                         ") -> (t23: f32[n]) {\n  a = broadcast_in_dim(x) {dims: [0], shape: [n, n]}\n" + tables + rows + "}\n");
    Bound bound(*compiled, SCALIDE_CUDA);
    const auto arrays = [&](size_t rows_of_x) {
        std::vector<scalide_array> all;
        for (int i = 0; i < 26; i++) all.push_back(bound.floats(Floats(rows_of_x, 2)));
        return all;
    };
    EXPECT_EQ(bound.bind(arrays(46000)), SCALIDE_OUT_OF_MEMORY) << scalide_message(bound.context());
    ASSERT_EQ(bound.bind(arrays(3)), SCALIDE_OK) << scalide_message(bound.context());
    bound.run();
    EXPECT_EQ(bound.read(25), Floats(3, 2 + 24 * 4));
}

/// A GPU does not recover from a kernel that writes outside of all arrays, so a process of its own runs it.
TEST_F(bindings, say_that_a_run_failed_on_the_device) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    const auto fail = [] {
        const auto compiled = compile_for_card(
            "program wide(x: f32[n]) -> (y: f32[n, 16777216]) {\n  y = broadcast_in_dim(x) {dims: [0], shape: [n, 16777216]}\n}\n");
        Bound bound(*compiled, SCALIDE_CUDA);
        scalide_array x = bound.floats(Floats(16, 1)), y = bound.floats(Floats(16, 1));
        if (x.data > y.data) std::swap(x, y); // y is said to have the next GiB
        const std::array<int64_t, 2> shape{16, 16777216};
        scalide_status status = bound.bind({x, scalide_dense_array(y.data, nullptr, SCALIDE_F32, 2, shape.data())});
        if (status == SCALIDE_OK) status = scalide_run(bound.binding());
        if (status == SCALIDE_OK) status = scalide_synchronise(bound.context());
        std::fprintf(stderr, "status %d: %s\n", status, scalide_message(bound.context()));
        std::fprintf(stderr, "again %d\n", scalide_run(bound.binding()));
        std::_Exit(status);
    };
    EXPECT_EXIT(fail(), testing::ExitedWithCode(SCALIDE_DEVICE_FAILED),
                "status 10: wide.*CUDA_ERROR_ILLEGAL_ADDRESS.*Create the context again.*again 10");
}

/// Each matmul multiplies by a scalar of its own, so their scales are in slots of the scalar table next to each other.
TEST_F(bindings, give_cublaslt_each_slot_of_the_scalar_table) {
    constexpr int matmuls = 6;
    std::string arguments, body, results;
    for (int i = 0; i < matmuls; i++) {
        const std::string k = std::to_string(i);
        body += "  s" + k + " = mul(s, " + std::to_string(1 << i) + ".0)\n  d" + k + " = dot_general(a, b) {contract: [[1], [1]]}\n  y" +
                k + " = mul(d" + k + ", s" + k + ")\n";
        results += (i ? ", y" : "y") + k + ": f32[32, 16]";
    }
    const std::string text =
        "program slots(x: f8_e4m3fn[32, 64], w: f8_e4m3fn[16, 64], r: f32[]) -> (" + results +
        ") {\n  s = mul(r, 0.5)\n  a = convert_element_type(x) {dtype: f32}\n  b = convert_element_type(w) {dtype: f32}\n" + body + "}\n";
    const auto compiled = compile_for_card(text);
    Bound bound(*compiled, SCALIDE_CUDA);
    const std::vector<uint8_t> ones(32 * 64, 0x38); // 1
    const float two = 2;
    std::vector<scalide_array> arrays{bound.add(SCALIDE_F8_E4M3FN, {32, 64}, ones.data(), 32 * 64),
                                      bound.add(SCALIDE_F8_E4M3FN, {16, 64}, ones.data(), 16 * 64), bound.add(SCALIDE_F32, {}, &two, 4)};
    const Floats nan(32 * 16, NAN);
    for (int i = 0; i < matmuls; i++) arrays.push_back(bound.add(SCALIDE_F32, {32, 16}, nan.data(), nan.size() * 4));
    ASSERT_EQ(bound.bind(std::move(arrays)), SCALIDE_OK) << scalide_message(bound.context());
    for (size_t step = 0; step < scalide_step_count(bound.binding()); step++) {
        scalide_step_info info = {};
        ASSERT_EQ(scalide_describe_step(bound.binding(), step, &info), SCALIDE_OK);
        EXPECT_EQ(info.notice, nullptr) << info.notice;
    }
    bound.run();
    for (int i = 0; i < matmuls; i++) EXPECT_EQ(bound.read(3 + static_cast<size_t>(i))[0], 64.0f * static_cast<float>(1 << i)) << i;
}

} // namespace scalide

// Loops and switches of plans: what their steps read and write.
#include "block_programs.h"
#include <algorithm>
#include <numeric>

using namespace scalide::test;

TEST(blocks, scan_takes_and_makes_rows) {
    Context context(1);
    for (int64_t n : {0, 1, 2, 5})
        for (int64_t width : {3, 32}) // 6 and 64 bytes
            for (size_t offset : {0, 1})
                for (bool is_reverse : {false, true}) {
                    SCOPED_TRACE(testing::Message() << n << " rows of " << width << " at " << offset << (is_reverse ? " reverse" : ""));
                    ScanPlan plan(n, width, false, is_reverse);
                    ScanArrays arrays(n, width, offset);
                    Bound binding;
                    ASSERT_EQ(bind_all(context, plan, arrays.arrays(), binding), SCALIDE_OK) << scalide_message(context.handle);
                    for (int run = 0; run < 3; ++run) {
                        ASSERT_EQ(scalide_run(binding.handle), SCALIDE_OK) << scalide_message(context.handle);
                        arrays.expect(n, is_reverse);
                    }
                }
}

TEST(blocks, count_limits_the_steps) {
    Context context(1);
    for (int32_t count : {-2147483647 - 1, -3, 0, 1, 4, 5, 6, 2147483647})
        for (bool is_reverse : {false, true}) {
            SCOPED_TRACE(count);
            ScanPlan plan(5, 3, true, is_reverse);
            ScanArrays arrays(5, 3);
            arrays.count[0] = count;
            Bound binding;
            ASSERT_EQ(bind_all(context, plan, arrays.arrays(), binding), SCALIDE_OK) << scalide_message(context.handle);
            ASSERT_EQ(scalide_run(binding.handle), SCALIDE_OK);
            arrays.expect(std::clamp(count, 0, 5), is_reverse);
        }
}

TEST(blocks, rows_stay_in_place_where_kernels_may_write_them) {
    static std::vector<int16_t *> written;
    for (const auto &[width, offset, is_in_place] : {std::tuple<int64_t, size_t, bool>{32, 0, true}, {32, 1, false}, {3, 0, false}}) {
        Context context(1);
        ScanPlan plan(2, width, false, false);
        const int32_t seen = plan.step("see",
                                       [](void **arguments) {
                                           written.push_back(host<int16_t>(arguments[1]));
                                           return 0;
                                       },
                                       {plan.out});
        plan.scan->block.end_step = seen + 1;
        ScanArrays arrays(2, width, offset);
        Bound binding;
        written.clear();
        ASSERT_EQ(bind_all(context, plan, arrays.arrays(), binding), SCALIDE_OK) << scalide_message(context.handle);
        ASSERT_EQ(scalide_run(binding.handle), SCALIDE_OK);
        EXPECT_EQ(written[0] == arrays.y.data(), is_in_place);
        EXPECT_EQ(written[0] == written[1], !is_in_place);
        arrays.expect(2, false);
    }
}

TEST(blocks, scan_takes_other_arrays_and_further_bindings) {
    Context context(1), other_context(1);
    ScanPlan plan(5, 3, false, false);
    ScanArrays first(5, 3), second(5, 3), third(5, 3);
    second.x.fill(-4, 3);
    third.h0.fill(1, 1);
    Bound binding, like;
    ASSERT_EQ(bind_all(context, plan, first.arrays(), binding), SCALIDE_OK);
    ASSERT_EQ(scalide_run(binding.handle), SCALIDE_OK);
    ASSERT_EQ(scalide_set_arguments(binding.handle, second.arrays().data(), 5), SCALIDE_OK);
    ASSERT_EQ(scalide_bind_like(other_context.handle, binding.handle, third.arrays().data(), 5, &like.handle), SCALIDE_OK);
    ASSERT_EQ(scalide_run(binding.handle), SCALIDE_OK);
    ASSERT_EQ(scalide_run(like.handle), SCALIDE_OK);
    ASSERT_EQ(scalide_set_argument(binding.handle, 3, &first.h.array), SCALIDE_OK);
    for (const ScanArrays *each : {&first, &second, &third}) each->expect(5, false);
    alignas(64) static char arena[4096];
    ASSERT_EQ(scalide_set_arena(binding.handle, arena, sizeof(arena)), SCALIDE_OK);
    second.y.fill(0, 0);
    ASSERT_EQ(scalide_run(binding.handle), SCALIDE_OK);
    EXPECT_EQ(first.h.values(), second.h.values());
}

TEST(blocks, arrays_with_strides_are_copied) {
    Context context(1);
    ScanPlan plan(5, 3, false, false);
    ScanArrays arrays(5, 3);
    std::vector<scalide_array> given = arrays.arrays();
    Elements<int16_t> wide(SCALIDE_I16, {5, 7});
    for (size_t i = 0; i < 15; ++i) wide[i / 3 * 7 + i % 3] = arrays.x[i];
    given[0].data = wide.data();
    given[0].stride[0] = 7;
    Bound binding;
    ASSERT_EQ(bind_all(context, plan, given, binding), SCALIDE_OK) << scalide_message(context.handle);
    EXPECT_EQ(scalide_binding_copied_bytes(binding.handle, 0), 30U);
    ASSERT_EQ(scalide_run(binding.handle), SCALIDE_OK);
    arrays.expect(5, false);
}

namespace {

/// a1 = b; b1 = a + b.
int rotate(void **arguments) {
    for (int64_t i = 0; i < elements(arguments[1]); ++i) {
        const float a = host<float>(arguments[1])[i], b = host<float>(arguments[2])[i];
        host<float>(arguments[3])[i] = b;
        host<float>(arguments[4])[i] = a + b;
    }
    return 0;
}

/// Returns the Fibonacci numbers with index n and n + 1, from f and g.
std::pair<float, float> fibonacci(int64_t n, float f, float g) {
    for (; n > 0; --n) std::tie(f, g) = std::pair(g, f + g);
    return {f, g};
}

} // namespace

TEST(blocks, carries_may_begin_in_each_others_results) {
    Context context(1);
    for (int64_t n : {0, 1, 2, 3, 5}) {
        BlockPlan plan;
        const int32_t a = plan.argument("a", SCALIDE_INOUT, SCALIDE_F32, {2}), b = plan.argument("b", SCALIDE_INOUT, SCALIDE_F32, {2});
        const int32_t before_a = plan.array("a.before", SCALIDE_F32, {2}), before_b = plan.array("b.before", SCALIDE_F32, {2});
        plan.step("rotate", rotate, {before_a, before_b, a, b});
        BlockRows &loop = plan.block("fori a", SCALIDE_BLOCK_LOOP, -1, 0, 1, n);
        for (bool is_swapped : {false, true}) {
            SCOPED_TRACE(testing::Message() << n << is_swapped);
            loop.carries = {{is_swapped ? b : a, before_a, a}, {is_swapped ? a : b, before_b, b}};
            Elements<float> x(SCALIDE_F32, {2}, 1), y(SCALIDE_F32, {2}, 2);
            Bound binding;
            ASSERT_EQ(bind_all(context, plan, {x.array, y.array}, binding), SCALIDE_OK) << scalide_message(context.handle);
            ASSERT_EQ(scalide_run(binding.handle), SCALIDE_OK);
            const auto expected = is_swapped ? fibonacci(n, 2, 1) : fibonacci(n, 1, 2);
            EXPECT_EQ(x[1], expected.first);
            EXPECT_EQ(y[1], expected.second);
        }
    }
}

TEST(blocks, carries_share_a_first_value_and_may_be_in_place) {
    Context context(1);
    for (int64_t n : {0, 1, 2, 5}) {
        BlockPlan plan;
        const int32_t init = plan.argument("init", SCALIDE_INPUT, SCALIDE_F32, {2}),
                      a = plan.argument("a", SCALIDE_OUTPUT, SCALIDE_F32, {2}), b = plan.argument("b", SCALIDE_OUTPUT, SCALIDE_F32, {2}),
                      c = plan.argument("c", SCALIDE_INOUT, SCALIDE_F32, {2}), d = plan.argument("d", SCALIDE_OUTPUT, SCALIDE_F32, {2});
        const int32_t before_a = plan.array("a.before", SCALIDE_F32, {2}), before_b = plan.array("b.before", SCALIDE_F32, {2});
        plan.step("rotate", rotate, {before_a, before_b, a, b});
        plan.step("add",
                  [](void **arguments) {
                      for (int i = 0; i < 2; ++i) {
                          host<float>(arguments[1])[i] += 1;
                          host<float>(arguments[2])[i] += 2;
                      }
                      return 0;
                  },
                  {c, d});
        plan.block("fori a", SCALIDE_BLOCK_LOOP, -1, 0, 2, n).carries = {{init, before_a, a}, {init, before_b, b}, {c, c, c}, {init, d, d}};
        Elements<float> x(SCALIDE_F32, {2}, 3),
            results[4] = {{SCALIDE_F32, {2}}, {SCALIDE_F32, {2}}, {SCALIDE_F32, {2}, 7}, {SCALIDE_F32, {2}}};
        Bound binding;
        std::vector<scalide_array> arrays = {x.array};
        for (const auto &each : results) arrays.push_back(each.array);
        ASSERT_EQ(bind_all(context, plan, arrays, binding), SCALIDE_OK) << scalide_message(context.handle);
        ASSERT_EQ(scalide_run(binding.handle), SCALIDE_OK);
        const auto expected = fibonacci(n, 3, 3);
        const float values[] = {expected.first, expected.second, 7 + static_cast<float>(n), 3 + 2 * static_cast<float>(n)};
        for (size_t i = 0; i < 4; ++i) EXPECT_EQ(results[i].values(), std::vector<float>(2, values[i])) << i << " after " << n;
        EXPECT_EQ(x[0], 3);
    }
}

TEST(blocks, while_runs_until_its_condition_is_false) {
    Context context(1);
    for (int32_t limit : {0, 3, 4, 7, 13, 30})
        for (bool is_inout : {false, true}) {
            WhilePlan plan(0, is_inout);
            Elements<int32_t> x(SCALIDE_I32, {}, 3), most(SCALIDE_I32, {}, limit), y(SCALIDE_I32, {});
            Bound binding;
            std::vector<scalide_array> arrays = {x.array, most.array};
            if (!is_inout) arrays.push_back(y.array);
            ASSERT_EQ(bind_all(context, plan, arrays, binding), SCALIDE_OK) << scalide_message(context.handle);
            ASSERT_EQ(scalide_run(binding.handle), SCALIDE_OK);
            int32_t expected = 3;
            while (expected < limit) expected *= 2;
            EXPECT_EQ((is_inout ? x : y)[0], expected) << limit;
        }
}

TEST(blocks, while_fails_at_its_limit_and_can_run_again) {
    Context context(1);
    WhilePlan plan(3);
    Elements<int32_t> x(SCALIDE_I32, {}, 1), limit(SCALIDE_I32, {}, 8), y(SCALIDE_I32, {});
    Bound binding;
    ASSERT_EQ(bind_all(context, plan, {x.array, limit.array, y.array}, binding), SCALIDE_OK);
    ASSERT_EQ(scalide_run(binding.handle), SCALIDE_OK) << "three steps are allowed";
    EXPECT_EQ(y[0], 8);
    limit[0] = 9;
    ASSERT_EQ(scalide_run(binding.handle), SCALIDE_STEP_LIMIT);
    EXPECT_STREQ(scalide_message(context.handle),
                 "net: cannot begin step 3 of while y (net.scl:7): the loop may have at most 3 steps, and its condition is still true. Set "
                 "a larger max_steps, or change the condition or the arrays.");
    limit[0] = 5;
    ASSERT_EQ(scalide_run(binding.handle), SCALIDE_OK);
    EXPECT_EQ(y[0], 8);
}

TEST(blocks, switch_runs_one_branch) {
    Context context(1);
    const auto add = [](auto number) {
        return [](void **arguments) {
            *host<int32_t>(arguments[1]) += decltype(number)::value;
            return 0;
        };
    };
    for (int32_t index : {-5, 0, 1, 2, 3, 99}) {
        BlockPlan plan;
        const int32_t which = plan.argument("index", SCALIDE_INPUT, SCALIDE_I32, {}),
                      y = plan.argument("y", SCALIDE_INOUT, SCALIDE_I32, {});
        plan.step("one", add(std::integral_constant<int, 1>()), {y});
        plan.step("ten", add(std::integral_constant<int, 10>()), {y});
        plan.step("hundred", add(std::integral_constant<int, 100>()), {y});
        plan.step("thousand", add(std::integral_constant<int, 1000>()), {y});
        BlockRows &choice = plan.block("switch y", SCALIDE_BLOCK_SWITCH, -1, 0, 3);
        choice.branch_ends = {1, 1, 3};
        choice.block.condition = which;
        Elements<int32_t> i(SCALIDE_I32, {}, index), result(SCALIDE_I32, {});
        Bound binding;
        ASSERT_EQ(bind_all(context, plan, {i.array, result.array}, binding), SCALIDE_OK) << scalide_message(context.handle);
        ASSERT_EQ(scalide_run(binding.handle), SCALIDE_OK);
        EXPECT_EQ(result[0], 1000 + (index <= 0 ? 1 : index == 1 ? 0 : 110)) << index;
    }
}

namespace {

/// sum = before + element.
int add_scalar(void **arguments) {
    *host<float>(arguments[3]) = *host<float>(arguments[1]) + *host<float>(arguments[2]);
    return 0;
}

/// program net(x: f32[3, 2, 4], s0: f32[]) -> (s: f32[], partial: f32[3, 2, 4], rounds: i32[])
///   s, partial = scan over x: while (round < 2): scan over the rows of x: scan over their elements: s + element
struct NestedPlan : BlockPlan {
    explicit NestedPlan(bool has_carried_result) {
        const int32_t x = argument("x", SCALIDE_INPUT, SCALIDE_F32, {3, 2, 4}), s0 = argument("s0", SCALIDE_INPUT, SCALIDE_F32, {}),
                      s = argument("s", SCALIDE_OUTPUT, SCALIDE_F32, {}), y = argument("y", SCALIDE_OUTPUT, SCALIDE_F32, {3, 2, 4});
        const int32_t zero = argument("zero", SCALIDE_INPUT, SCALIDE_I32, {});
        const int32_t matrix = array("x.matrix", SCALIDE_F32, {2, 4}), row = array("x.row", SCALIDE_F32, {4}),
                      element = array("x.element", SCALIDE_F32, {}), out_matrix = array("y.matrix", SCALIDE_F32, {2, 4}),
                      out_row = array("y.row", SCALIDE_F32, {4}), out = array("y.element", SCALIDE_F32, {});
        const int32_t outer = array("s.outer", SCALIDE_F32, {}), rounds = array("s.rounds", SCALIDE_F32, {}),
                      middle = array("s.middle", SCALIDE_F32, {}), inner = array("s.inner", SCALIDE_F32, {}),
                      after = has_carried_result ? s : array("s.after", SCALIDE_F32, {});
        const int32_t round = array("round", SCALIDE_I32, {}), next_round = array("round.after", SCALIDE_I32, {}),
                      is_less = array("less", SCALIDE_BOOL, {});
        step("less",
             [](void **arguments) {
                 *host<uint8_t>(arguments[2]) = *host<int32_t>(arguments[1]) < 2;
                 return 0;
             },
             {round, is_less});
        step("add", add_scalar, {inner, element, after});
        step("copy", copy<float>, {after, out});
        step("next",
             [](void **arguments) {
                 *host<int32_t>(arguments[2]) = *host<int32_t>(arguments[1]) + 1;
                 return 0;
             },
             {round, next_round});
        if (!has_carried_result) step("result", copy<float>, {after, s});
        const int32_t end = step_count();
        BlockRows &all = block("scan s", SCALIDE_BLOCK_LOOP, -1, 0, end, 3);
        all.rows = {{matrix, x, 0}, {out_matrix, y, 1}};
        all.carries = {{s0, outer, s}};
        BlockRows &twice = block("while round", SCALIDE_BLOCK_WHILE, 0, 0, 4);
        twice.block.condition = is_less;
        twice.block.test_end = 1;
        twice.carries = {{outer, rounds, after}, {zero, round, next_round}};
        BlockRows &rows = block("scan rows", SCALIDE_BLOCK_LOOP, 1, 1, 3, 2);
        rows.rows = {{row, matrix, 0}, {out_row, out_matrix, 1}};
        rows.carries = {{rounds, middle, after}};
        BlockRows &elements = block("scan elements", SCALIDE_BLOCK_LOOP, 2, 1, 3, 4);
        elements.rows = {{element, row, 0}, {out, out_row, 1}};
        elements.carries = {{middle, inner, after}};
    }
};

} // namespace

TEST(blocks, nest_and_hand_arrays_from_block_to_block) {
    Context context(1);
    for (bool has_carried_result : {false, true}) {
        NestedPlan plan(has_carried_result);
        Elements<float> x(SCALIDE_F32, {3, 2, 4}), s0(SCALIDE_F32, {}, 0.5F), s(SCALIDE_F32, {}), y(SCALIDE_F32, {3, 2, 4});
        Elements<int32_t> zero(SCALIDE_I32, {});
        x.fill(1, 1);
        Bound binding;
        ASSERT_EQ(bind_all(context, plan, {x.array, s0.array, s.array, y.array, zero.array}, binding), SCALIDE_OK)
            << scalide_message(context.handle);
        for (int run = 0; run < 2; ++run) {
            ASSERT_EQ(scalide_run(binding.handle), SCALIDE_OK) << scalide_message(context.handle);
            float sum = 0.5F;
            std::vector<float> expected(24);
            for (size_t matrix = 0; matrix < 3; ++matrix)
                for (int round = 0; round < 2; ++round)
                    for (size_t i = 0; i < 8; ++i) expected[8 * matrix + i] = sum += x[8 * matrix + i];
            EXPECT_EQ(s[0], sum);
            EXPECT_EQ(y.values(), expected);
        }
    }
}

TEST(blocks, without_steps_hand_their_first_values_on) {
    Context context(1);
    BlockPlan plan;
    const int32_t x = plan.argument("x", SCALIDE_INPUT, SCALIDE_F32, {2}), y = plan.argument("y", SCALIDE_OUTPUT, SCALIDE_F32, {2}),
                  z = plan.argument("z", SCALIDE_OUTPUT, SCALIDE_F32, {2}), n = plan.argument("n", SCALIDE_INPUT, SCALIDE_I32, {});
    const int32_t spare = plan.array("spare", SCALIDE_F32, {2}), other = plan.array("other", SCALIDE_F32, {2});
    plan.step("copy", copy<float>, {y, z});
    plan.block("fori y", SCALIDE_BLOCK_LOOP, -1, 0, 0, 0).carries = {{x, spare, y}};
    BlockRows &last = plan.block("fori z", SCALIDE_BLOCK_LOOP, -1, 1, 1);
    last.carries = {{z, other, z}};
    last.block.condition = n;
    Elements<float> a(SCALIDE_F32, {2}, 3), b(SCALIDE_F32, {2}), c(SCALIDE_F32, {2});
    Elements<int32_t> zero(SCALIDE_I32, {});
    Bound binding;
    ASSERT_EQ(bind_all(context, plan, {a.array, b.array, c.array, zero.array}, binding), SCALIDE_OK) << scalide_message(context.handle);
    ASSERT_EQ(scalide_run(binding.handle), SCALIDE_OK);
    EXPECT_EQ(b[1], 3);
    EXPECT_EQ(c[1], 3);
}

TEST(blocks, outputs_that_a_loop_updates_in_place_are_aligned) {
    Context context(1);
    BlockPlan plan;
    const int32_t x = plan.argument("x", SCALIDE_INPUT, SCALIDE_F32, {2}), y = plan.argument("y", SCALIDE_OUTPUT, SCALIDE_F32, {2});
    plan.step("none", [](void **) { return 0; }, {y});
    plan.block("fori y", SCALIDE_BLOCK_LOOP, -1, 0, 1, 2).carries = {{x, y, y}};
    for (size_t offset : {0, 1}) {
        Elements<float> a(SCALIDE_F32, {2}, 3), b(SCALIDE_F32, {2}, 0, offset);
        Bound binding;
        EXPECT_EQ(bind_all(context, plan, {a.array, b.array}, binding), offset == 0 ? SCALIDE_OK : SCALIDE_INVALID_ARGUMENT);
    }
    EXPECT_STREQ(scalide_message(context.handle),
                 "net.y: data must be aligned to 64 bytes; this address is 4 bytes past a 64-byte boundary. "
                 "Use scalide_allocate or aligned_alloc(64, size).");
}

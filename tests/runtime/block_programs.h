#pragma once
#include "block_plan.h"
#include "fixture.h"

/// Programs with one loop.
namespace scalide::test {

using Numbers = std::vector<int16_t>;

inline scalide_status bind_all(Context &context, BlockPlan &plan, const std::vector<scalide_array> &arrays, Bound &binding) {
    return scalide_bind(context.handle, plan.finish(), arrays.data(), arrays.size(), &binding.handle);
}

/// y[i] = x[i] for all elements.
template<typename T>
int copy(void **arguments) {
    std::copy_n(host<T>(arguments[1]), elements(arguments[1]), host<T>(arguments[2]));
    return 0;
}

/// after = before + row; out = 2 * after + step.
inline int accumulate(void **arguments) {
    const int16_t *before = host<int16_t>(arguments[1]), *row = host<int16_t>(arguments[2]);
    int16_t *after = host<int16_t>(arguments[3]), *out = host<int16_t>(arguments[4]);
    const int32_t step = *host<int32_t>(arguments[5]);
    for (int64_t i = 0; i < elements(arguments[1]); ++i) {
        after[i] = static_cast<int16_t>(before[i] + row[i]);
        out[i] = static_cast<int16_t>(2 * after[i] + step);
    }
    return 0;
}

/// program net(x: i16[n, width], h0: i16[width], count: i32[]) -> (h: i16[width], y: i16[n, width])
///   h, y = scan(x, h0)
struct ScanPlan : BlockPlan {
    BlockRows *scan;
    int32_t x, h0, count, h, y, row, out, before, number;

    ScanPlan(int64_t n, int64_t width, bool has_count, bool is_reverse) {
        x = argument("x", SCALIDE_INPUT, SCALIDE_I16, {n, width});
        h0 = argument("h0", SCALIDE_INPUT, SCALIDE_I16, {width});
        count = argument("count", SCALIDE_INPUT, SCALIDE_I32, {});
        h = argument("h", SCALIDE_OUTPUT, SCALIDE_I16, {width});
        y = argument("y", SCALIDE_OUTPUT, SCALIDE_I16, {n, width});
        row = array("x.row", SCALIDE_I16, {width});
        out = array("y.row", SCALIDE_I16, {width});
        before = array("h.before", SCALIDE_I16, {width});
        number = array("i", SCALIDE_I32, {});
        step("accumulate", accumulate, {before, row, h, out, number});
        scan = &block("scan h", SCALIDE_BLOCK_LOOP, -1, 0, 1, n);
        scan->rows = {{row, x, 0}, {out, y, 1}};
        scan->carries = {{h0, before, h}};
        scan->results = {h, y};
        scan->block.step = number;
        scan->block.reverse = is_reverse;
        if (has_count) scan->block.condition = count;
    }
};

/// The arrays of a ScanPlan, and what they must become.
struct ScanArrays {
    Elements<int16_t> x, h0, h, y;
    Elements<int32_t> count;
    int64_t n, width;

    ScanArrays(int64_t n, int64_t width, size_t offset = 0)
        : x(SCALIDE_I16, {n, width}, 0, offset), h0(SCALIDE_I16, {width}, 0, offset), h(SCALIDE_I16, {width}, -9, offset),
          y(SCALIDE_I16, {n, width}, -9, offset), count(SCALIDE_I32, {}), n(n), width(width) {
        x.fill(3, 1);
        h0.fill(100, 10);
    }
    std::vector<scalide_array> arrays() const { return {x.array, h0.array, count.array, h.array, y.array}; }

    void expect(int64_t steps, bool is_reverse) const {
        Numbers carried = h0.values(), all(static_cast<size_t>(n * width), 0);
        const Numbers rows = x.values();
        for (int64_t k = 0; k < steps; ++k) {
            const int64_t i = is_reverse ? steps - 1 - k : k;
            for (int64_t c = 0; c < width; ++c) {
                int16_t &sum = carried[static_cast<size_t>(c)];
                sum = static_cast<int16_t>(sum + rows[static_cast<size_t>(i * width + c)]);
                all[static_cast<size_t>(i * width + c)] = static_cast<int16_t>(2 * sum + i);
            }
        }
        EXPECT_EQ(h.values(), carried);
        EXPECT_EQ(y.values(), all);
    }
};

/// program net(x: i32[], limit: i32[]) -> (y: i32[])   y = while(x < limit) 2 * x
struct WhilePlan : BlockPlan {
    BlockRows *loop;

    explicit WhilePlan(int64_t most_steps = 0, bool is_inout = false) {
        const int32_t x = argument("x", is_inout ? SCALIDE_INOUT : SCALIDE_INPUT, SCALIDE_I32, {});
        const int32_t limit = argument("limit", SCALIDE_INPUT, SCALIDE_I32, {});
        const int32_t y = is_inout ? x : argument("y", SCALIDE_OUTPUT, SCALIDE_I32, {});
        const int32_t before = array("y.before", SCALIDE_I32, {}), is_less = array("less", SCALIDE_BOOL, {});
        step("less",
             [](void **arguments) {
                 *host<uint8_t>(arguments[3]) = *host<int32_t>(arguments[1]) < *host<int32_t>(arguments[2]);
                 return 0;
             },
             {before, limit, is_less});
        step("double",
             [](void **arguments) {
                 *host<int32_t>(arguments[2]) = 2 * *host<int32_t>(arguments[1]);
                 return 0;
             },
             {before, y});
        loop = &block("while y", SCALIDE_BLOCK_WHILE, -1, 0, 2);
        loop->block.condition = is_less;
        loop->block.test_end = 1;
        loop->block.most_steps = most_steps;
        loop->carries = {{x, before, y}};
        loop->results = {y};
    }
};

} // namespace scalide::test

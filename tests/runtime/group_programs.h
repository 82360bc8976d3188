#pragma once
#include "block_plan.h"
#include "scalide/groups.h"
#include <cstdint>
#include <string>

/// Programs that ranks run together.
namespace scalide::test {

/// The kernels of this thread fail with this error; 0: they work.
inline thread_local int kernel_error = 0;

/// parts: [ranks, chunk] -> sum: [chunk]
template<typename T>
int sum_parts(void **arguments) {
    const auto &parts = *static_cast<HalideBuffer *>(arguments[1]);
    const int32_t chunk = parts.dim[0].extent, ranks = parts.dim[1].extent;
    for (int32_t i = 0; i < chunk; ++i) {
        T sum = 0;
        for (int32_t rank = 0; rank < ranks; ++rank) sum = static_cast<T>(sum + host<T>(arguments[1])[rank * chunk + i]);
        host<T>(arguments[2])[i] = sum;
    }
    return kernel_error;
}

/// Adds the steps that sum an array over a group: each rank sums one chunk, and all ranks collect the sums.
class Summed {
public:
    /// `elements`: of the arrays, which have one axis.
    Summed(BlockPlan &plan, const std::string &name, int32_t dtype, int64_t group, int64_t elements)
        : name_(name), chunk(plan.chunk(keep(name, ".chunk"), group, elements)),
          parts(plan.array(keep(name, ".parts"), dtype, {group, chunk})), mine(plan.array(keep(name, ".mine"), dtype, {chunk})) {}

private:
    /// Plans have pointers to names.
    static const char *keep(const std::string &name, const char *suffix) {
        static thread_local std::deque<std::string> names;
        return names.emplace_back(name + suffix).c_str();
    }
    std::string name_;

public:
    int64_t chunk;
    int32_t parts, mine;
};

/// program net(x: f32[n], u: i16[m]) -> (y: f32[n], v: i16[m])
///   y, v = x, u summed over the ranks of group data
struct SumProgram {
    BlockPlan plan;
    int64_t n = plan.symbol("n"), m = plan.symbol("m"), data = plan.group("data");
    int32_t x = plan.argument("x", SCALIDE_INPUT, SCALIDE_F32, {n}), u = plan.argument("u", SCALIDE_INPUT, SCALIDE_I16, {m}),
            y = plan.argument("y", SCALIDE_OUTPUT, SCALIDE_F32, {n}), v = plan.argument("v", SCALIDE_OUTPUT, SCALIDE_I16, {m});
    Summed of_x{plan, "x", SCALIDE_F32, data, n}, of_u{plan, "u", SCALIDE_I16, data, m};
    const scalide_program *program;

    SumProgram() {
        plan.collective("exchange", SCALIDE_EXCHANGE, data, {{x, of_x.parts}, {u, of_u.parts}});
        plan.step("sum_x", sum_parts<float>, {of_x.parts, of_x.mine});
        plan.step("sum_u", sum_parts<int16_t>, {of_u.parts, of_u.mine});
        plan.collective("collect", SCALIDE_COLLECT, data, {{of_x.mine, y}, {of_u.mine, v}});
        for (const int32_t result : {y, v}) plan.buffers[static_cast<size_t>(result)].first_step = 3;
        program = plan.finish();
    }
    SumProgram(const SumProgram &) = delete;
    SumProgram &operator=(const SumProgram &) = delete;
};

/// program net(x: f32[n]) -> (y: f32[n])   y = x summed over the rows, then over the columns of a grid of ranks
struct GridProgram {
    BlockPlan plan;
    int64_t n = plan.symbol("n"), rows = plan.group("rows"), columns = plan.group("columns"), row = plan.rank("row", rows);
    int32_t x = plan.argument("x", SCALIDE_INPUT, SCALIDE_F32, {n}), y = plan.argument("y", SCALIDE_OUTPUT, SCALIDE_F32, {n}),
            h = plan.array("h", SCALIDE_F32, {n});
    Summed first{plan, "first", SCALIDE_F32, rows, n}, second{plan, "second", SCALIDE_F32, columns, n};
    const scalide_program *program;

    GridProgram() {
        plan.collective("exchange_rows", SCALIDE_EXCHANGE, rows, {{x, first.parts}});
        plan.step("sum_rows", sum_parts<float>, {first.parts, first.mine});
        plan.collective("collect_rows", SCALIDE_COLLECT, rows, {{first.mine, h}});
        plan.collective("exchange_columns", SCALIDE_EXCHANGE, columns, {{h, second.parts}});
        plan.step("sum_columns", sum_parts<float>, {second.parts, second.mine});
        plan.collective("collect_columns", SCALIDE_COLLECT, columns, {{second.mine, y}});
        program = plan.finish();
    }
};

/// The arrays of a SumProgram on one rank.
struct SumArrays {
    Elements<float> x, y;
    Elements<int16_t> u, v;

    /// Data begins `offset` elements after a multiple of 64 bytes.
    SumArrays(int64_t n, int64_t m, int32_t rank, size_t offset = 0)
        : x(SCALIDE_F32, {n}, 0, offset), y(SCALIDE_F32, {n}, -1, offset), u(SCALIDE_I16, {m}, 0, offset), v(SCALIDE_I16, {m}, -1, offset) {
        x.fill(static_cast<float>(rank), 1);
        u.fill(static_cast<int16_t>(10 * rank), 1);
    }
    std::vector<scalide_array> arrays() const { return {x.array, u.array, y.array, v.array}; }

    /// The number of wrong elements.
    int64_t wrong(int32_t ranks) {
        int64_t count = 0;
        const int32_t all = ranks * (ranks - 1) / 2;
        const std::vector<float> sums = y.values();
        const std::vector<int16_t> others = v.values();
        for (size_t i = 0; i < sums.size(); ++i) count += sums[i] != static_cast<float>(ranks * static_cast<int32_t>(i) + all);
        for (size_t i = 0; i < others.size(); ++i) count += others[i] != static_cast<int16_t>(ranks * static_cast<int32_t>(i) + 10 * all);
        return count;
    }
};

} // namespace scalide::test

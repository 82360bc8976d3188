#include "expr/base_operators.h"
#include "schedules/cpu/kinds.h"
#include "schedules/cpu/loops.h"
#include <algorithm>

// map: one pass over each output. Tiles: see elements.cpp. `task` is for two arrays and a few operators; elements that cost more make
// smaller tasks. The gates of an LSTM, 32 x 512 with 20 arrays and 5 exponentials, take 165 us in one task, and 87 us in four (Xeon,
// AVX-512, two cores, 2026-11-28).
namespace scalide {

namespace {

/// What an element may cost without a smaller task, in additions of a vector's element and bytes of arrays, which take about as long.
constexpr int cheap_element = 24;

/// Counts the operators and arrays of the output's shape. The operands of a concatenation have another extent of one axis.
int cost_of_element(const Program &program, const KernelOutput &output) {
    const auto compared = [&](ValueId value) {
        Extents shape = program.type(value).shape;
        if (output.joined_axis && *output.joined_axis < std::ssize(shape)) shape.erase(shape.begin() + *output.joined_axis);
        return shape;
    };
    const Extents own = compared(program.results[output.results[0]].value);
    int cost = 0;
    for (const Node &node : program.nodes)
        if (compared(node.results[0]) == own) cost += operator_cost(node.op);
    const auto add_array = [&](ValueId value) {
        if (compared(value) == own) cost += size_of(program.type(value).dtype);
    };
    for (const Argument &argument : program.arguments) add_array(argument.value);
    for (const Result &result : program.results) add_array(result.value);
    return cost;
}

} // namespace

void schedule_map(LoweredKernel &kernel, const Tiles &tiles, const Halide::Target &) {
    for (const KernelOutput &output : kernel.outputs) {
        Tiles scaled = tiles;
        scaled["task"] /= std::max(1, cost_of_element(kernel.program, output) / cheap_element);
        schedule_elements(kernel, output, scaled);
    }
}

} // namespace scalide

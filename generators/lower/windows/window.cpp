#include "lower/windows/window.h"
#include "lower/values/outputs.h"
#include <algorithm>

// window: reductions of windows, selection of one element from each window (gradients of maxima), and convolutions.
namespace scalide {
namespace {

const std::map<std::string, void (*)(Lowering &, const Node &)> operators = {
    {"reduce_window_sum", lower_reduce_window},
    {"reduce_window_max", lower_reduce_window},
    {"reduce_window_min", lower_reduce_window},
    {"select_and_scatter_add", lower_select_and_scatter_add},
    {"select_and_gather_add", lower_select_and_gather_add},
    {"conv_general_dilated", lower_convolution},
};

} // namespace

void lower_window(Lowering &lowering) {
    const Program &program = lowering.kernel.program;
    const auto is_window = [](const Node &node) { return operators.contains(node.op); };
    internal_check(std::ranges::count_if(program.nodes, is_window) == 1, "a window kernel must have one window operator");
    const Node &node = *std::ranges::find_if(program.nodes, is_window);
    lowering.kernel.stages = WindowStages();
    operators.at(node.op)(lowering, node);
    for (const std::vector<int> &results : results_by_shape(program)) {
        add_output(lowering, results, axis_vars(program.type(program.results[results[0]].value).rank()));
    }
}

} // namespace scalide

#include "lower/window.h"
#include "lower/outputs.h"

// window: reductions of windows, the choice of an element of each (gradients of maxima), convolutions.
//
// stages: fold (over the result: a reduction of large windows), winner (over the windows), those of lower/window_convolution.cpp
// facts: `operator`: fold or convolution; those of lower/window_convolution.cpp
namespace scalide {
namespace {

struct Row {
    void (*lower)(Lowering &, const Node &);
    const char *schedule; ///< the fact `operator`
};

const std::map<std::string, Row> rows = {
    {"reduce_window_sum", {lower_reduce_window, "fold"}},
    {"reduce_window_max", {lower_reduce_window, "fold"}},
    {"reduce_window_min", {lower_reduce_window, "fold"}},
    {"select_and_scatter_add", {lower_select_and_scatter_add, "fold"}},
    {"select_and_gather_add", {lower_select_and_gather_add, "fold"}},
    {"conv_general_dilated", {lower_convolution, "convolution"}},
};

} // namespace

void lower_window(Lowering &lowering) {
    const Program &program = lowering.kernel.program;
    for (const Node &node : program.nodes) {
        const auto row = rows.find(node.op);
        if (row != rows.end()) {
            row->second.lower(lowering, node);
            lowering.kernel.facts["operator"] = row->second.schedule;
        }
    }
    internal_check(lowering.kernel.facts.count("operator") == 1, "a window kernel has no window operator");
    for (const std::vector<int> &results : results_by_shape(program)) {
        add_output(lowering, results, axis_vars(program.type(program.results[results[0]].value).rank()));
    }
}

} // namespace scalide

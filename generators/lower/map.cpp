#include "lower/outputs.h"

// map and scalar kernels: everything is inlined into the outputs, one Func a shape. No stages, extents or facts.
namespace scalide {

void lower_map(Lowering &lowering) {
    for (const std::vector<int> &results : results_by_shape(lowering.kernel.program)) {
        int rank = lowering.kernel.program.type(lowering.kernel.program.results[results[0]].value).rank();
        add_output(lowering, results, axis_vars(rank));
    }
}

void lower_scalar(Lowering &lowering) {
    for (const Value &value : lowering.kernel.program.values) {
        internal_check(value.type.is_scalar(), "value " + value.name + " of a scalar kernel is an array");
    }
    lower_map(lowering);
}

} // namespace scalide

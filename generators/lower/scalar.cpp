#include "lower/outputs.h"

// scalar kernels: everything is inlined into the outputs. No stages, extents or facts.
namespace scalide {

void lower_scalar(Lowering &lowering) {
    for (const Value &value : lowering.kernel.program.values) {
        internal_check(value.type.is_scalar(), "value " + value.name + " of a scalar kernel is an array");
    }
    add_outputs_by_shape(lowering);
}

} // namespace scalide

#include "lower/outputs.h"
#include "lower/shared.h"

// scalar kernels: everything is inlined into the outputs, but for values that would stand in very many places.
namespace scalide {

void lower_scalar(Lowering &lowering) {
    for (const Value &value : lowering.kernel.program.values) {
        internal_check(value.type.is_scalar(), "value " + value.name + " of a scalar kernel is an array");
    }
    share_single_elements(lowering);
    add_outputs_by_shape(lowering);
}

} // namespace scalide

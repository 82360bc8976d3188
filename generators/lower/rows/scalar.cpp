#include "lower/values/outputs.h"
#include "lower/values/shared.h"

// scalar: everything is inlined into the outputs. Only values that very many expressions contain are stored.
namespace scalide {

void lower_scalar(Lowering &lowering) {
    for (const Value &value : lowering.kernel.program.values) {
        internal_check(value.type.is_scalar(), "value " + value.name + " of a scalar kernel is an array");
    }
    share_single_elements(lowering);
    add_outputs_by_shape(lowering);
}

} // namespace scalide

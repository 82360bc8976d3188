#include "lower/outputs.h"
#include "lower/shared.h"

// map kernels: everything is inlined into the outputs, one Func a shape, but for single elements that would stand in very many places.
namespace scalide {

void lower_map(Lowering &lowering) {
    share_single_elements(lowering);
    add_outputs_by_shape(lowering);
}

} // namespace scalide

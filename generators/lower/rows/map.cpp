#include "lower/outputs.h"
#include "lower/shared.h"

// map: everything is inlined into the outputs, one Func for each shape. Only single elements that very many expressions contain are stored.
namespace scalide {

void lower_map(Lowering &lowering) {
    share_single_elements(lowering);
    add_outputs_by_shape(lowering);
}

} // namespace scalide

#include "lower/outputs.h"

// map kernels: everything is inlined into the outputs, one Func a shape. No stages, extents or facts.
namespace scalide {

void lower_map(Lowering &lowering) { add_outputs_by_shape(lowering); }

} // namespace scalide

#include "lower/values/outputs.h"
#include "lower/values/shared.h"
#include "lower/values/thread_access.h"

// map: everything is inlined into the outputs, one Func for each shape. Only single elements that very many expressions contain are stored.
namespace scalide {

void lower_map(Lowering &lowering) {
    share_single_elements(lowering);
    const Program &program = lowering.kernel.program;
    for (const std::vector<int> &results : results_by_shape(program)) {
        if (lowering.target.has_feature(Halide::Target::CUDA)) lowering.values.move_adjacent(elements_of_access(program, results));
        add_output(lowering, results, axis_vars(program.type(program.results[results[0]].value).rank()));
    }
}

} // namespace scalide

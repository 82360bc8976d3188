#include "lower/rows/reduction.h"
#include "lower/values/outputs.h"
#include <set>

// full: reductions of whole arrays, followed by rank-0 arithmetic.
namespace scalide {

void lower_full(Lowering &lowering) {
    const Program &program = lowering.kernel.program;
    auto &stages = lowering.kernel.stages.emplace<TotalStages>();
    std::set<Extents> shapes;
    for (const Node &node : program.nodes) {
        if (is_reduction(node) && shapes.insert(program.type(node.operands[0]).shape).second) {
            reduce_all(lowering, find_reductions(program, program.type(node.operands[0]).shape, reduced_axes(node)), stages);
        }
    }
    add_outputs_by_shape(lowering);
}

} // namespace scalide

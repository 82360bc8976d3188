#include "lower/outputs.h"
#include "lower/reduction.h"
#include <set>

// full: reductions of whole arrays, then rank-0 arithmetic.
//
// stages: partial, lane, fold, total (lower/reduction.h)
namespace scalide {

void lower_full(Lowering &lowering) {
    const Program &program = lowering.kernel.program;
    std::set<Extents> shapes;
    for (const Node &node : program.nodes) {
        if (is_reduction(node) && shapes.insert(program.type(node.operands[0]).shape).second) {
            reduce_all(lowering, find_reductions(program, program.type(node.operands[0]).shape, folded_axes(node)));
        }
    }
    add_outputs_by_shape(lowering);
}

} // namespace scalide

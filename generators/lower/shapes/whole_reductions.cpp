#include "lower/shapes/whole_reductions.h"
#include "ir/reduction_axes.h"
#include "ir/rewrite.h"
#include <numeric>

namespace scalide {
namespace {

int space_rank(const Program &program) {
    int rank = 0;
    for (const Node &node : program.nodes) {
        if (is_reduction(node)) rank = std::max(rank, program.type(node.operands[0]).rank());
    }
    return rank;
}

std::vector<int64_t> first_axes(int count) {
    std::vector<int64_t> axes(count);
    std::iota(axes.begin(), axes.end(), 0);
    return axes;
}

ValueId reduce(Program &program, const Node &like, ValueId operand, const std::vector<int64_t> &axes, const std::string &name) {
    Node node = like;
    node.operands = {operand};
    node.attributes["axes"] = to_attribute(axes);
    Type type = program.type(operand);
    for (size_t i = axes.size(); i-- > 0;) type.shape.erase(type.shape.begin() + axes[i]);
    return add_node(program, node, {type}, name)[0];
}

} // namespace

bool is_whole_reduction(const Program &program, const Node &node) {
    return is_reduction(node) && program.type(node.operands[0]).rank() < space_rank(program);
}

Program reduce_columns_first(const Program &program) {
    Rewriter rewriter(program);
    rewriter.copy_arguments();
    for (const Node &node : program.nodes) {
        const int rank = is_reduction(node) ? program.type(node.operands[0]).rank() : 0;
        if (rank < 2 || !program.type(node.results[0]).is_scalar()) {
            rewriter.copy(node);
            continue;
        }
        const std::string &name = program.value_name(node.results[0]);
        const ValueId rows = reduce(rewriter.result(), node, rewriter(node.operands[0]), {rank - 1}, name + "_rows");
        rewriter.map(node.results[0], reduce(rewriter.result(), node, rows, first_axes(rank - 1), name));
    }
    rewriter.copy_results();
    return rewriter.take();
}

} // namespace scalide

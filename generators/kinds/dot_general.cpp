#include "kinds/dot_general.h"
#include <algorithm>

namespace scalide {

std::optional<DotGeneralAxes> several_axes_of_a_kind(const Program &program, const Node &dot) {
    const std::vector<Attribute> &contracted = dot.attributes.at("contract").list, &batched = dot.attributes.at("batch").list;
    for (size_t side = 0; side < 2; side++) {
        DotGeneralAxes axes{batched[side].list.size(), contracted[side].list.size(), 0};
        axes.free = program.type(dot.operands[side]).shape.size() - axes.batch - axes.contracting;
        if (std::max({axes.batch, axes.contracting, axes.free}) > 1) return axes;
    }
    return {};
}

bool sums_operand(const Node &sum, const Node &dot) {
    const std::vector<Attribute> &contracted = dot.attributes.at("contract").list;
    const auto is_operand = [&](size_t side) {
        return dot.operands[side] == sum.operands[0] && contracted[side] == sum.attributes.at("axes");
    };
    return sum.op == "reduce_sum" && (is_operand(0) || is_operand(1));
}

} // namespace scalide

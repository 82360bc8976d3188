#include "expr/base_operators.h"
#include "lower/halide/strict.h"
#include "lower/math/elementwise.h"
#include "lower/math/math.h"
#include "lower/values/outputs.h"
#include <algorithm>

// scan: one scan along an axis, with elementwise operators before and after it. The elements of a line are combined one after the other.
namespace scalide {
using Halide::Expr;

namespace {

/// log(exp(a) + exp(b)) without intermediate overflow. If both are -inf, the result is -inf.
Expr log_add_exp(const Expr &a, const Expr &b) {
    const Expr top = math::max(a, b), difference = strict_sub(math::min(a, b), top);
    return select(math::is_finite(top), strict_add(top, math::log1p(math::exp(difference))), top);
}

/// Sums and log-sums start from +0.
Expr start(const Node &node, const Expr &x) {
    const bool from_zero = base_operator(node.op).signs.never_negative_zero == From::no_operand;
    return x.type().is_float() && from_zero ? strict_add(x, Halide::Internal::make_zero(x.type())) : x;
}

Expr combine(const Node &node, const Expr &a, const Expr &b, Dtype dtype) {
    const std::string_view step = base_operator(node.op).fold;
    if (step.empty()) {
        return log_add_exp(a, b);
    }
    const ElementwiseOperand operands[] = {{a, dtype}, {b, dtype}};
    return lower_elementwise(step, operands, {}, dtype);
}

const Node &find_scan(const Program &program) {
    const auto is_scan = [](const Node &node) { return find_base_operator(node.op)->shape == Shape::scan; };
    const auto found = std::ranges::find_if(program.nodes, is_scan);
    internal_check(found != program.nodes.end(), "a scan kernel has no scan");
    return *found;
}

} // namespace

void lower_scan(Lowering &lowering) {
    const Program &program = lowering.kernel.program;
    const Node &node = find_scan(program);
    const Type &type = program.type(node.results[0]);
    const auto axis = size_t(node.attributes.at("axis").integer.value());
    const bool reverse = node.attributes.at("reverse").word == "true";
    const std::vector<Halide::Var> vars = axis_vars(type.rank());
    const Expr extent = lowering.values.extent(type.shape[axis]);
    const auto place = [&](const Expr &number) {
        Index index(vars.begin(), vars.end());
        index[axis] = reverse ? Halide::Internal::simplify(extent - 1) - number : number;
        return buffer_order(index);
    };
    Halide::Func scan("scan");
    scan(buffer_order(vars)) = start(node, lowering.values.at(node.operands[0], Index(vars.begin(), vars.end())));
    Halide::RDom r(1, Halide::Internal::simplify(max(extent - 1, 0)));
    scan(place(r)) = combine(node, scan(place(r - 1)), scan(place(r)), type.dtype);
    scan.bound(vars[axis], 0, extent); // otherwise an empty line would be rounded up to one element, which does not exist
    lowering.values.bind(node.results[0], scan);
    lowering.kernel.stages = ScanStages{type.rank() - 1 - int(axis), scan};
    const std::vector<std::vector<int>> groups = results_by_shape(program);
    internal_check(groups.size() == 1, "results of a scan kernel have several shapes");
    add_output(lowering, groups[0], vars);
}

} // namespace scalide

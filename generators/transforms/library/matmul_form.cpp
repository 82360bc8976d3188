#include "transforms/library/matmul_form.h"
#include "transforms/analysis/costs.h"
#include "transforms/analysis/operators.h"
#include "transforms/expand/normalize_dot.h"
#include "transforms/library/operand_scales.h"

namespace scalide {

namespace {

/// The axes of an operand; -1: there is none.
struct OperandAxes {
    int64_t batch, k, other;
};

OperandAxes axes_of(int64_t rank, const std::vector<int64_t> &batch, const std::vector<int64_t> &contract) {
    return {batch.empty() ? -1 : batch[0], contract[0], other_axes(rank, batch, contract)[0]};
}

std::optional<MatmulOperand> operand_form(const Program &program, const std::vector<int> &makers, ValueId value, const OperandAxes &axes) {
    const Extents &shape = program.type(value).shape;
    std::vector<Extent> strides(shape.size(), 1);
    for (size_t axis = shape.size() - 1; axis-- > 0;) strides[axis] = strides[axis + 1] * shape[axis + 1];
    const int64_t last = static_cast<int64_t>(shape.size()) - 1;
    if (axes.batch == last) return {};
    MatmulOperand operand{array_behind(program, makers, value), axes.k == last, 1, 0};
    operand.leading = strides[operand.k_contiguous ? axes.other : axes.k];
    if (axes.batch >= 0) operand.batch_stride = strides[axes.batch];
    return operand;
}

} // namespace

std::optional<MatmulForm> matmul_form(const Program &program, const std::vector<int> &makers, const Node &dot) {
    if (!is_normal_dot(program, dot)) return {};
    const DotAxes axes = dot_axes(dot);
    const Extents &lhs = program.type(dot.operands[0]).shape, &rhs = program.type(dot.operands[1]).shape;
    const OperandAxes of_lhs = axes_of(std::ssize(lhs), axes.lhs_batch, axes.lhs_contract);
    const OperandAxes of_rhs = axes_of(std::ssize(rhs), axes.rhs_batch, axes.rhs_contract);
    const auto lhs_form = operand_form(program, makers, dot.operands[0], of_lhs);
    const auto rhs_form = operand_form(program, makers, dot.operands[1], of_rhs);
    if (!lhs_form || !rhs_form) return {};
    const Extent batch = of_lhs.batch < 0 ? Extent(1) : lhs[of_lhs.batch];
    return MatmulForm{batch, lhs[of_lhs.other], rhs[of_rhs.other], lhs[of_lhs.k], *lhs_form, *rhs_form};
}

std::optional<ScaledForm> scaled_form(const Program &program, const std::vector<int> &makers, const Node &dot) {
    const auto form = matmul_form(program, makers, dot);
    if (!form || form->batch != Extent(1) || !form->lhs.k_contiguous || !form->rhs.k_contiguous) return {};
    const auto lhs = scaled_operand(program, makers, dot.operands[0], form->m, form->k);
    const auto rhs = scaled_operand(program, makers, dot.operands[1], form->n, form->k);
    if (!lhs || !rhs) return {};
    ScaledForm scaled{*form, {lhs->mul, rhs->mul}};
    scaled.form.lhs.value = lhs->codes, scaled.form.lhs.scales = lhs->scales;
    scaled.form.rhs.value = rhs->codes, scaled.form.rhs.scales = rhs->scales;
    return scaled;
}

ValueId array_behind(const Program &program, const std::vector<int> &makers, ValueId value) {
    while (makers[value] >= 0) {
        const Node &node = program.nodes[makers[value]];
        if (!is_decoding(program, node) && (node.op != "reshape" || is_copy(program, node))) break;
        value = node.operands[0];
    }
    return value;
}

} // namespace scalide

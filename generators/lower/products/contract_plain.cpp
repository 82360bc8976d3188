#include "lower/products/contract.h"
#include "lower/rows/reduction.h"

namespace scalide {
using Halide::Expr;

void lower_plain_product(Lowering &lowering, Contraction &contraction, const std::vector<const Node *> &reductions) {
    Values &values = lowering.values;
    const Halide::Var column("column"), row("row"), batch("batch");
    const Halide::RDom r(0, values.extent(contraction.depth), "r");
    const Expr last_row = values.extent(contraction.rows) - 1, last_column = values.extent(contraction.columns) - 1;
    const Expr lhs = operand_at(values, contraction.lhs, {batch, Halide::min(row, last_row), r});
    const Expr rhs = operand_at(values, contraction.rhs, {batch, Halide::min(column, last_column), r});
    Halide::Func product("product");
    product(column, row, batch) = 0.0f;
    Expr term = lhs * rhs;
    if (!Halide::Internal::expr_uses_var(term, r.x.name())) term = Halide::select(r.x >= 0, term, 0.0f); // else it would be added once
    product(column, row, batch) += term;
    contraction.product = product;
    ContractStages &stages = contract_stages(lowering);
    stages.product = product;
    values.bind(contraction.node->results[0], [product, c = contraction](const Index &index) -> Expr {
        return product(c.rhs.free_axis < 0 ? Expr(0) : index.back(), c.lhs.free_axis < 0 ? Expr(0) : index[c.lhs.batch_axis >= 0],
                       c.lhs.batch_axis < 0 ? Expr(0) : index[0]);
    });
    reduce_all(lowering, reductions, stages.totals);
}

} // namespace scalide

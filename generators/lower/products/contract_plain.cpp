#include "lower/products/contract.h"
#include "lower/rows/blocked_sum.h"
#include "lower/rows/reduction.h"

namespace scalide {
using Halide::Expr;

void lower_plain_product(Lowering &lowering, Contraction &contraction, const std::vector<const Node *> &reductions) {
    Values &values = lowering.values;
    const Halide::Var column("column"), row("row"), batch("batch");
    const Expr last_row = values.extent(contraction.rows) - 1, last_column = values.extent(contraction.columns) - 1;
    ContractStages &stages = contract_stages(lowering);
    stages.product =
        sum_in_blocks({column, row, batch}, {sum_axis(contraction.depth, lowering.kernel)}, Halide::cast(contraction.sum, 0),
                      [&](const Expr &sum, const std::vector<Expr> &at) {
                          return sum + packed_at(values, contraction.lhs, {batch, Halide::min(row, last_row), at[0]}) *
                                           packed_at(values, contraction.rhs, {batch, Halide::min(column, last_column), at[0]});
                      });
    const Halide::Func product = contraction.product = stages.product.value;
    values.bind(contraction.node->results[0], [&lowering, product, c = contraction](const Index &index) -> Expr {
        return to_result(lowering, c,
                         product(c.rhs.free_axis < 0 ? Expr(0) : index.back(), c.lhs.free_axis < 0 ? Expr(0) : index[c.lhs.batch_axis >= 0],
                                 c.lhs.batch_axis < 0 ? Expr(0) : index[0]));
    });
    reduce_all(lowering, reductions, stages.totals);
}

} // namespace scalide

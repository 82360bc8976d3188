#include "lower/products/contract.h"
#include "lower/rows/blocked_sum.h"

namespace scalide {
using Halide::Expr;
using Halide::Func;
using Halide::Var;

namespace {

/// Lowers the matmul: packs both operands, then sums the products.
class ProductLowering {
public:
    ProductLowering(Lowering &lowering, Contraction &contraction)
        : values_(lowering.values), stages_(contract_stages(lowering)), contraction_(contraction), rows_(values_.extent(contraction.rows)),
          columns_(values_.extent(contraction.columns)), depth_(values_.extent(contraction.depth)),
          axis_(sum_axis(contraction.depth, lowering.kernel)), ragged_columns_(!contraction.columns.divide(contraction.width)),
          ragged_pairs_(contraction.pairs && !contraction.depth.divide(2)) {}

    void lower() {
        if (contraction_.pairs || !contraction_.lhs.plain) {
            pack_lhs();
        }
        contraction_.rhs.depth_contiguous ? pack_rhs_transposed() : pack_rhs();
        contraction_.pairs ? sum_pairs() : sum();
        contraction_.product = stages_.product.value;
    }

private:
    /// Defines func(vars) as value(0) if the guard holds, otherwise 0. An undefined guard always holds. `value` must add its argument to an
    /// index. The argument is a reduction variable of extent 1 that carries the guard, so nothing is read if the guard does not hold.
    template<typename Value>
    void define(const Func &func, const std::vector<Var> &vars, const Expr &guard, Value value) {
        Func result = func;
        if (!guard.defined()) {
            result(vars) = value(Expr(0));
            return;
        }
        Halide::RDom once(0, 1, "once");
        once.where(guard);
        Expr guarded = value(Expr(once.x));
        result(vars) = Halide::cast(guarded.type(), 0);
        result(vars) = guarded;
    }

    Expr element(const ContractOperand &operand, const ContractIndex &at) {
        return contraction_.pairs ? operand_bf16_at(values_, operand, at) : operand_at(values_, operand, at);
    }

    /// An element of a pair if vectors run along rows or columns. With an odd depth, the last pair ends with a zero. The last element is
    /// read again there. A guard would be a second definition that first writes zeros, and it would separate the stores of a pair.
    Expr element_of_pair(const ContractOperand &operand, const ContractIndex &at) {
        if (!ragged_pairs_) return element(operand, at);
        const Expr read = element(operand, {at.batch, at.free, Halide::min(at.depth, depth_ - 1)});
        return Halide::select(at.depth < depth_, read, Halide::cast(read.type(), 0));
    }

    Expr column_of(const Expr &column, const Expr &panel) const { return panel * contraction_.width + column; }

    void pack_lhs() {
        const ContractOperand &lhs = contraction_.lhs;
        if (contraction_.pairs && !lhs.depth_contiguous) {
            lhs_rows_(row_, k_, batch_) = element_of_pair(lhs, {batch_, row_, k_});
            lhs_(pair_, row_, k_, batch_) = lhs_rows_(row_, 2 * k_ + pair_, batch_);
            stages_.packed.lhs_rows = lhs_rows_;
        } else {
            const std::vector<Var> vars = lhs.depth_contiguous ? std::vector<Var>{k_, row_, batch_} : std::vector<Var>{row_, k_, batch_};
            define(lhs_, vars, ragged_pairs_ ? k_ < depth_ : Expr(), [&](const Expr &once) {
                return element(lhs, {batch_, row_, k_ + once});
            });
        }
        stages_.packed.lhs = lhs_;
    }

    /// The left operand. For rows beyond the matrix, the last row is read.
    Expr lhs_at(const Expr &depth) {
        Expr row = Halide::min(row_, rows_ - 1);
        const ContractOperand &lhs = contraction_.lhs;
        if (!contraction_.pairs && lhs.plain) {
            return operand_at(values_, lhs, {batch_, row, depth});
        }
        return lhs.depth_contiguous ? lhs_(depth, row, batch_) : lhs_(row, depth, batch_);
    }

    void pack_rhs() {
        Expr column = column_of(column_, panel_), guard;
        if (ragged_columns_) {
            guard = column < columns_;
        }
        Func rows = contraction_.pairs ? rhs_rows_ : rhs_;
        define(rows, {column_, k_, panel_, batch_}, guard, [&](const Expr &once) {
            return element_of_pair(contraction_.rhs, {batch_, column + once, k_});
        });
        if (contraction_.pairs) {
            rhs_(pair_, column_, k_, panel_, batch_) = rhs_rows_(column_, 2 * k_ + pair_, panel_, batch_);
            stages_.packed.rhs_rows = rhs_rows_;
        }
        stages_.packed.rhs = rhs_;
    }

    /// Vectors run along k, which is contiguous, so the guard is on k. Columns are clamped.
    void pack_rhs_transposed() {
        Expr column = column_of(column_, panel_);
        column = ragged_columns_ ? Halide::min(column, columns_ - 1) : column;
        Expr guard = contraction_.depth.divide(contraction_.pairs ? 32 : 16) ? Expr() : k_ < depth_;
        define(rhs_rows_, {k_, column_, panel_, batch_}, guard, [&](const Expr &once) {
            return element(contraction_.rhs, {batch_, column, k_ + once});
        });
        if (contraction_.pairs) {
            rhs_(pair_, column_, k_, panel_, batch_) = rhs_rows_(2 * k_ + pair_, column_, panel_, batch_);
        } else {
            rhs_block_(column_, k_, panel_, batch_) = rhs_rows_(k_, column_, panel_, batch_);
            rhs_(column_, k_, panel_, batch_) = rhs_block_(column_, k_, panel_, batch_);
            stages_.packed.rhs_block = rhs_block_;
        }
        stages_.packed.rhs_rows = rhs_rows_;
        stages_.packed.rhs = rhs_;
    }

    void sum() {
        stages_.product = sum_in_blocks({column_, row_, panel_, batch_}, {axis_}, 0.0f, [&](const Expr &sum, const std::vector<Expr> &at) {
            return sum + lhs_at(at[0]) * rhs_(column_, at[0], panel_, batch_);
        });
    }

    void sum_pairs() {
        const bool interleaved = !contraction_.lhs.depth_contiguous;
        const Expr row = Halide::min(row_, rows_ - 1);
        const SumAxis pairs = {Halide::Internal::simplify((axis_.extent + 1) / 2), (axis_.most + 1) / 2};
        stages_.product =
            sum_in_blocks({column_, row_, panel_, batch_}, {{2, 2}, pairs}, 0.0f, [&](const Expr &sum, const std::vector<Expr> &at) {
                const Expr a = interleaved ? lhs_(at[0], row, at[1], batch_) : lhs_(2 * at[1] + at[0], row, batch_);
                return sum + Halide::cast<float>(a) * Halide::cast<float>(rhs_(at[0], column_, at[1], panel_, batch_));
            });
    }

    Values &values_;
    ContractStages &stages_;
    Contraction &contraction_;
    Expr rows_, columns_, depth_;
    SumAxis axis_; ///< the depth axis
    bool ragged_columns_, ragged_pairs_;
    Func lhs_{"lhs"}, lhs_rows_{"lhs_rows"}, rhs_{"rhs"}, rhs_rows_{"rhs_rows"}, rhs_block_{"rhs_block"};
    Var pair_{"pair"}, column_{"column"}, row_{"row"}, k_{"k"}, panel_{"panel"}, batch_{"batch"};
};

} // namespace

void lower_product(Lowering &lowering, Contraction &contraction) { ProductLowering(lowering, contraction).lower(); }

} // namespace scalide

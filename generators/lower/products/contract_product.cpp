#include "lower/formats/formats.h"
#include "lower/formats/integers.h"
#include "lower/halide/amx_tiles.h"
#include "lower/halide/strict.h"
#include "lower/products/contract.h"
#include "lower/rows/blocked_sum.h"
#include "lower/values/panels.h"

namespace scalide {
using Halide::Expr;
using Halide::Func;
using Halide::Var;

namespace {

/// When a left operand is transposed: columns of the result of which it is not, and the depth above which it is, two blocks of a sum. 512 x
/// 2048 over 8,192 takes 80 ms instead of 112 (Xeon, AVX-512, two cores, 2026-11-28).
constexpr int64_t most_narrow_columns = 64;
constexpr double least_transposed_depth = 2048;

/// Lowers the matmul: packs both operands, then sums the products.
class ProductLowering {
public:
    ProductLowering(Lowering &lowering, Contraction &contraction)
        : values_(lowering.values), stages_(contract_stages(lowering)), contraction_(contraction), rows_(values_.extent(contraction.rows)),
          columns_(values_.extent(contraction.columns)), depth_(values_.extent(contraction.depth)),
          axis_(sum_axis(contraction.depth, lowering.kernel)), group_(contraction.group), is_grouped_(group_ > 1),
          step_(contraction.in_tiles ? amx_step_groups * group_ : group_), ragged_columns_(!contraction.columns.divide(contraction.width)),
          ragged_groups_(is_grouped_ && (!contraction.depth.divide(step_) || may_be_empty())), transposes_lhs_(is_worth_transposing()),
          reads_lhs_(may_read_lhs()) {}

    void lower() {
        if (!reads_lhs_) pack_lhs();
        if (!contraction_.rhs.is_in_panels) contraction_.rhs.depth_contiguous ? pack_rhs_transposed() : pack_rhs();
        contraction_.in_tiles ? sum_tiles() : sum();
        contraction_.product = contraction_.lhs.is_shifted ? unshifted() : stages_.product.value;
    }

private:
    /// Defines func(vars) as value(0) if the guard holds, otherwise 0, or anything. An undefined guard always holds. `value` must add its
    /// argument to an index. The argument is a reduction variable of extent 1 that carries the guard, so nothing is read if the guard does
    /// not hold.
    template<typename Value>
    void define(const Func &func, const std::vector<Var> &vars, const Expr &guard, Value value, bool is_zero_otherwise = true) {
        Func result = func;
        if (!guard.defined()) {
            result(vars) = value(Expr(0));
            return;
        }
        Halide::RDom once(0, 1, "once");
        once.where(guard);
        Expr guarded = value(Expr(once.x));
        result(vars) = is_zero_otherwise ? Halide::cast(guarded.type(), 0) : Halide::undef(guarded.type());
        result(vars) = guarded;
    }

    /// True if the left operand need not be packed. Tiles have whole rows only, as they read rows beyond the matrix, too.
    bool may_read_lhs() const {
        const ContractOperand &lhs = contraction_.lhs;
        const bool has_groups = lhs.depth_contiguous && !ragged_groups_;
        if (contraction_.in_tiles) return lhs.stored >= 0 && has_groups && contraction_.rows.divide(amx_side);
        return (lhs.plain || lhs.stored >= 0) && !transposes_lhs_ && (!is_grouped_ || has_groups);
    }

    Expr element(const ContractOperand &operand, const ContractIndex &at) { return packed_at(values_, operand, at); }

    /// An element of a group if vectors run along rows or columns. The last group ends with zeros if the depth is not a multiple. The last
    /// element is read again there. A guard would be a second definition that first writes zeros, and it would separate the stores of a
    /// group.
    Expr element_of_group(const ContractOperand &operand, const ContractIndex &at) {
        if (!ragged_groups_ || may_be_empty()) return element(operand, at);
        const Expr read = element(operand, {at.batch, at.free, Halide::min(at.depth, depth_ - 1)});
        return Halide::select(at.depth < depth_, read, Halide::cast(read.type(), 0));
    }

    /// True if tiles may have no depths to read. Their packed operands still have elements, which define() then guards.
    bool may_be_empty() const { return contraction_.in_tiles && !contraction_.depth.is_static(); }

    /// False if elements outside of an operand that a guard excludes may be anything: those of tiles whose sums are never stored. Zeros
    /// would become calls of memset, after each of which LLVM configures tiles again.
    bool needs_zeros() const { return !contraction_.in_tiles || may_be_empty(); }

    /// Returns a guard that also holds only for elements that exist along k.
    Expr guard_empty(const Expr &guard) const {
        if (!may_be_empty()) return guard;
        return guard.defined() ? guard && k_ < depth_ : k_ < depth_;
    }

    Expr column_of(const Expr &column, const Expr &panel) const { return panel * contraction_.width + column; }

    /// True if a tile would read the left operand at rows of memory that are far apart, in a long sum. Each read of a few adjacent elements
    /// then needs a cache line of its own, and a long sum needs more of them than the first-level cache has. Narrow results have too few
    /// panels that read the transposed copy.
    bool is_worth_transposing() const {
        const ContractOperand &lhs = contraction_.lhs;
        const int64_t last_axis = values_.program().type(lhs.value).rank() - 1;
        const bool is_narrow = contraction_.columns.is_static() && contraction_.columns.value() <= most_narrow_columns;
        return !is_grouped_ && !lhs.depth_contiguous && lhs.free_axis == last_axis && !is_narrow && contraction_.depth.is_static() &&
               axis_.most > least_transposed_depth;
    }

    /// Vectors run along rows, which are contiguous, so the guard is on the row. Depths are clamped.
    void pack_lhs_transposed() {
        const Expr depth = contraction_.depth.divide(16) ? Expr(k_) : Halide::min(k_, depth_ - 1);
        const Expr guard = contraction_.rows.divide(16) ? Expr() : row_ < rows_;
        define(lhs_rows_, {row_, k_, batch_}, guard, [&](const Expr &once) {
            return element(contraction_.lhs, {batch_, row_ + once, depth});
        });
        lhs_block_(k_, row_, batch_) = lhs_rows_(row_, k_, batch_);
        lhs_(k_, row_, batch_) = lhs_block_(k_, row_, batch_);
        stages_.packed.lhs_rows = lhs_rows_;
        stages_.packed.lhs_block = lhs_block_;
    }

    /// Defines the packed left operand of tiles, whose rows are counted in tiles. The last row is repeated. A row of a ragged depth is made
    /// in a stage of its own, so that its zeros need no parallel loop of their own.
    void pack_lhs_tiles() {
        if (!contraction_.lhs.depth_contiguous) return pack_lhs_words();
        const Expr row = Halide::min(amx_side * tile_ + row_, rows_ - 1);
        const std::vector<Var> vars = {k_, row_, tile_, batch_};
        const auto read = [&](const Expr &once) { return element(contraction_.lhs, {batch_, row, k_ + once}); };
        if (!ragged_groups_) return define(lhs_, vars, Expr(), read);
        const Halide::RDom beyond(0, Halide::Internal::simplify(steps() * step_ - depth_), "beyond");
        Halide::RDom once(0, 1, "once");
        once.where(k_ < depth_);
        const Expr guarded = read(once.x);
        lhs_rows_(vars) = Halide::undef(guarded.type());
        lhs_rows_(depth_ + beyond, row_, tile_, batch_) = Halide::cast(guarded.type(), 0);
        lhs_rows_(vars) = guarded;
        lhs_(vars) = lhs_rows_(vars);
        stages_.packed.lhs_rows = lhs_rows_;
    }

    /// The same if rows are contiguous, not k. Groups become words, which are transposed as f32 is.
    void pack_lhs_words() {
        const Expr guard = contraction_.rows.divide(amx_side) ? Expr() : row_ < rows_;
        const auto read = [&](const Expr &once) { return element_of_group(contraction_.lhs, {batch_, row_ + once, k_}); };
        define(lhs_rows_, {row_, k_, batch_}, guard_empty(guard), read, needs_zeros());
        std::vector<Expr> group;
        for (int i = 0; i < group_; i++) group.push_back(bits_of(lhs_rows_(row_, group_ * k_ + i, batch_)));
        Func words("lhs_words");
        words(row_, k_, batch_) = Halide::concat_bits(group);
        lhs_block_(k_, row_, batch_) = words(row_, k_, batch_);
        lhs_(k_, row_, tile_, batch_) = lhs_block_(k_, amx_side * tile_ + row_, batch_);
        stages_.packed.lhs_rows = lhs_rows_;
        stages_.packed.lhs_words = words;
        stages_.packed.lhs_block = lhs_block_;
    }

    static Expr bits_of(const Expr &e) { return Halide::reinterpret(Halide::UInt(e.type().bits()), e); }

    void pack_lhs() {
        const ContractOperand &lhs = contraction_.lhs;
        stages_.packed.lhs = lhs_;
        if (contraction_.in_tiles) return pack_lhs_tiles();
        if (transposes_lhs_) return pack_lhs_transposed();
        if (is_grouped_ && !lhs.depth_contiguous) {
            lhs_rows_(row_, k_, batch_) = element_of_group(lhs, {batch_, row_, k_});
            lhs_(item_, row_, k_, batch_) = lhs_rows_(row_, group_ * k_ + item_, batch_);
            stages_.packed.lhs_rows = lhs_rows_;
        } else {
            const std::vector<Var> vars = lhs.depth_contiguous ? std::vector<Var>{k_, row_, batch_} : std::vector<Var>{row_, k_, batch_};
            define(lhs_, vars, ragged_groups_ ? k_ < depth_ : Expr(), [&](const Expr &once) {
                return element(lhs, {batch_, row_, k_ + once});
            });
        }
    }

    /// An element of a group of the left operand. For rows beyond the matrix, the last row is read.
    Expr lhs_at(const Expr &item, const Expr &k) {
        const Expr row = Halide::min(row_, rows_ - 1), depth = is_grouped_ ? group_ * k + item : k;
        if (reads_lhs_) return stored_lhs({batch_, row, depth});
        if (contraction_.lhs.depth_contiguous || transposes_lhs_) return lhs_(depth, row, batch_);
        return is_grouped_ ? lhs_(item, row, k, batch_) : lhs_(row, k, batch_);
    }

    /// An element of the left operand that is not packed.
    Expr stored_lhs(const ContractIndex &at) {
        if (contraction_.lhs.stored < 0) return element(contraction_.lhs, at);
        const Expr word = stored_at(values_, contraction_.lhs, at);
        return contraction_.lhs.packed.is_bfloat() ? Halide::reinterpret(contraction_.lhs.packed, word) : word;
    }

    Expr rhs_at(const Expr &item, const Expr &k) {
        if (contraction_.rhs.is_in_panels) return panel_element(is_grouped_ ? item : Expr(0), k);
        return is_grouped_ ? rhs_(item, column_, k, panel_, batch_) : rhs_(column_, k, panel_, batch_);
    }

    /// An element of a group of the right operand as it is in memory.
    Expr rhs_word(const Expr &item, const Expr &column, const Expr &k) {
        return contraction_.rhs.is_in_panels ? word_of_panels(item, column, k) : rhs_(item, column, k, panel_, batch_);
    }

    Expr word_of_panels(const Expr &item, const Expr &column, const Expr &k) {
        Index index = {panel_, k, column, item};
        if (contraction_.rhs.batch_axis >= 0) index.insert(index.begin(), batch_);
        return element_of_panels(values_, contraction_.rhs.value, index);
    }

    Expr panel_element(const Expr &item, const Expr &k) {
        const Expr element = word_of_panels(item, column_, k);
        if (contraction_.rhs.packed == Halide::Float(32) && element.type() == Halide::UInt(16)) return decode(Dtype::bf16, element);
        return contraction_.rhs.packed.is_bfloat() ? Halide::reinterpret(contraction_.rhs.packed, element) : element;
    }

    void pack_rhs() {
        Expr column = column_of(column_, panel_), guard;
        if (ragged_columns_) {
            guard = column < columns_;
        }
        Func rows = is_grouped_ ? rhs_rows_ : rhs_;
        const auto read = [&](const Expr &once) { return element_of_group(contraction_.rhs, {batch_, column + once, k_}); };
        define(rows, {column_, k_, panel_, batch_}, guard_empty(guard), read, needs_zeros());
        if (is_grouped_) {
            rhs_(item_, column_, k_, panel_, batch_) = rhs_rows_(column_, group_ * k_ + item_, panel_, batch_);
            stages_.packed.rhs_rows = rhs_rows_;
        }
        stages_.packed.rhs = rhs_;
    }

    /// Vectors run along k, which is contiguous, so the guard is on k. Columns are clamped.
    void pack_rhs_transposed() {
        Expr column = column_of(column_, panel_);
        column = ragged_columns_ ? Halide::min(column, columns_ - 1) : column;
        Expr guard = contraction_.depth.divide(16 * group_) ? Expr() : k_ < depth_;
        define(rhs_rows_, {k_, column_, panel_, batch_}, guard, [&](const Expr &once) {
            return element(contraction_.rhs, {batch_, column, k_ + once});
        });
        if (is_grouped_) {
            rhs_(item_, column_, k_, panel_, batch_) = rhs_rows_(group_ * k_ + item_, column_, panel_, batch_);
        } else {
            rhs_block_(column_, k_, panel_, batch_) = rhs_rows_(k_, column_, panel_, batch_);
            rhs_(column_, k_, panel_, batch_) = rhs_block_(column_, k_, panel_, batch_);
            stages_.packed.rhs_block = rhs_block_;
        }
        stages_.packed.rhs_rows = rhs_rows_;
        stages_.packed.rhs = rhs_;
    }

    Expr zero() const { return Halide::cast(contraction_.sum, 0); }

    SumAxis groups() const {
        return {Halide::Internal::simplify((axis_.extent + group_ - 1) / group_), (axis_.most + group_ - 1) / group_};
    }

    Expr multiply(const Expr &a, const Expr &b) const { return Halide::cast(contraction_.sum, a) * Halide::cast(contraction_.sum, b); }

    /// The factors of the right operand, by columns, as its panels are.
    void pack_rhs_factors() {
        const Var block("block");
        const Expr column = column_of(column_, panel_), depth = block * int(contraction_.block);
        Expr guard = Halide::Internal::is_positive_const(depth_) ? Expr() : depth < depth_;
        if (ragged_columns_) guard = guard.defined() ? guard && column < columns_ : column < columns_;
        rhs_factors_ = stages_.packed.rhs_factors = Func("rhs_factors");
        define(rhs_factors_, {column_, block, panel_, batch_}, guard, [&](const Expr &once) {
            return factor_at(values_, contraction_.rhs, {batch_, column + once, depth});
        });
    }

    /// Multiplies by the factor of the left operand first, unless it is so large that this could overflow although the result does not. A
    /// sum of products of codes is below 2^64, so `large` keeps it below 2^128. The order is the same for all other factors: then factors
    /// times powers of two give the same digits.
    Expr multiply_factors(const Expr &sum, const Expr &block) {
        std::vector<Expr> factors;
        const Expr row = Halide::min(row_, rows_ - 1), depth = block * int(contraction_.block);
        if (contraction_.lhs.factors) factors.push_back(factor_at(values_, contraction_.lhs, {batch_, row, depth}));
        if (contraction_.rhs.factors) factors.push_back(rhs_factors_(column_, block, panel_, batch_));
        if (factors.size() == 1) return strict_mul(sum, factors[0]);
        const float large = 0x1p+63F;
        const Expr is_large = magnitude_bits(factors[0]) > Halide::reinterpret<uint32_t>(Expr(large));
        return strict_mul(strict_mul(sum, Halide::select(is_large, factors[1], factors[0])),
                          Halide::select(is_large, factors[0], factors[1]));
    }

    BlockFactors block_factors() {
        if (contraction_.rhs.factors) pack_rhs_factors();
        if (!contraction_.lhs.factors && !contraction_.rhs.factors) return {};
        return {int(contraction_.block) / (contraction_.in_tiles ? step_ : group_),
                [this](const Expr &sum, const Expr &block) { return multiply_factors(sum, block); }};
    }

    void sum() {
        std::vector<SumAxis> axes = {groups()};
        if (is_grouped_) axes.insert(axes.begin(), {group_, double(group_)});
        const AddTerm add_term = [&](const Expr &sum, const std::vector<Expr> &at) {
            return sum + multiply(lhs_at(at.front(), at.back()), rhs_at(at.front(), at.back()));
        };
        stages_.product = sum_in_blocks({column_, row_, panel_, batch_}, axes, zero(), add_term, block_factors());
    }

    Expr steps() const { return Halide::Internal::simplify((depth_ + step_ - 1) / step_); }

    /// Sums by tiles of 32 rows. A block of 1,024 depths is one product of tiles.
    void sum_tiles() {
        const bool has_words = !contraction_.lhs.depth_contiguous;
        const int lhs_step = has_words ? amx_step_groups : step_;
        SumTiles tiles;
        tiles.step_terms = step_;
        tiles.place = amx_place;
        tiles.define = [=, this](const Func &product, const std::vector<Var> &vars, const Expr &first, const Expr &count) {
            const auto lhs = [&](const Expr &step, int row, int k) {
                if (!reads_lhs_) return Expr(lhs_(step * lhs_step + k, row, tile_, batch_));
                return stored_at(values_, contraction_.lhs, {batch_, tile_ * amx_side + row, step * lhs_step + k});
            };
            const auto rhs = [&](const Expr &step, int group, int column, int item) {
                return rhs_word(item, column, step * amx_step_groups + group);
            };
            std::vector<Expr> place = {tile_};
            place.insert(place.end(), vars.begin() + 2, vars.end());
            define_amx_product(product, place, contraction_.sum, count, [&](const Expr &each) -> AmxOperands {
                const Expr step = first + each;
                return {{contraction_.lhs.packed, lhs(step, 0, 0), lhs(step, 1, 0), lhs(step, amx_side / 2, 0),
                         lhs(step, amx_side - 1, lhs_step - 1)},
                        {contraction_.rhs.packed, rhs(step, 0, 0, 0), rhs(step, 1, 0, 0), rhs(step, 0, amx_side / 2, 0),
                         rhs(step, amx_step_groups - 1, amx_side - 1, group_ - 1)}};
            });
        };
        stages_.product = sum_in_tiles({column_, row_, panel_, batch_}, {steps(), axis_.most / step_ + 1}, zero(), tiles, block_factors());
    }

    /// The sum of the products, if the elements of the left operand are shifted by 128: subtracts 128 times the sum of each column of the
    /// right operand. Such a sum is a product by a stored one, because only products of stored bytes become vpdpbusd.
    Func unshifted() {
        Func product("unshifted");
        Func ones = stages_.packed.ones = Func("ones"), sums = stages_.packed.column_sums = Func("column_sums");
        ones(item_) = Halide::cast(contraction_.lhs.packed, 1);
        const Halide::RDom r({{0, group_}, {0, groups().extent}}, "column_term"); // Values knows elements by the names of their indices
        sums(column_, panel_, batch_) = zero();
        sums(column_, panel_, batch_) += multiply(ones(r.x), rhs_at(r.x, r.y));
        const Expr shift = integers::mul(sums(column_, panel_, batch_), 128), sum = stages_.product.value(column_, row_, panel_, batch_);
        product(column_, row_, panel_, batch_) = contraction_.lhs.packed.is_uint() ? integers::sub(sum, shift) : integers::add(sum, shift);
        return product;
    }

    Values &values_;
    ContractStages &stages_;
    Contraction &contraction_;
    Expr rows_, columns_, depth_;
    SumAxis axis_; ///< the depth axis
    int group_;
    bool is_grouped_;
    int step_; ///< depths to a multiple of which operands are padded
    bool ragged_columns_, ragged_groups_;
    bool transposes_lhs_;
    bool reads_lhs_; ///< without packing: whole groups are adjacent in memory
    Func lhs_{"lhs"}, lhs_rows_{"lhs_rows"}, lhs_block_{"lhs_block"}, rhs_{"rhs"}, rhs_rows_{"rhs_rows"}, rhs_block_{"rhs_block"},
        rhs_factors_;
    Var item_{"item"}, column_{"column"}, row_{"row"}, k_{"k"}, panel_{"panel"}, batch_{"batch"}, tile_{"tile"};
};

} // namespace

void lower_product(Lowering &lowering, Contraction &contraction) { ProductLowering(lowering, contraction).lower(); }

} // namespace scalide

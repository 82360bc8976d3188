#include "transforms/library/factor_scales.h"
#include "ir/rewrite.h"
#include "transforms/analysis/operators.h"
#include "transforms/library/library_call.h"
#include "transforms/library/operand_scales.h"
#include <algorithm>
#include <array>

namespace scalide {

namespace {

/// An operand of a matmul. Scales that are constant along the contracted axis are separate.
struct Factored {
    ValueId codes = -1; ///< encoded values as stored
    ValueId scales = -1;
    bool is_tensor = false; ///< one scale for the whole operand
};

class ScaleFactoring {
public:
    ScaleFactoring(const Program &program, const TargetFacts &facts)
        : facts_(facts), rewriter_(program), makers_(producers(program)), calls_(program, [](ValueId) { return true; }) {}

    Program run() {
        rewriter_.copy_arguments();
        const std::vector<Node> &nodes = rewriter_.source().nodes;
        for (int node = 0; node < static_cast<int>(nodes.size()); ++node) {
            const auto operands = nodes[node].op == "dot_general" ? factored(node) : std::nullopt;
            operands ? write(nodes[node], *operands) : rewriter_.copy(nodes[node]);
        }
        rewriter_.copy_results();
        return remove_dead_nodes(rewriter_.take());
    }

private:
    using Operands = std::array<Factored, 2>;

    std::optional<Operands> factored(int node) const {
        const Program &program = rewriter_.source();
        const auto form = matmul_form(program, makers_, program.nodes[node]);
        const bool is_f32 = program.type(program.nodes[node].results[0]).dtype == Dtype::f32;
        if (!form || !is_f32 || !dot_axes(program.nodes[node]).lhs_batch.empty() || takes_scales(node)) return {};
        Operands operands{factored(program.nodes[node].operands[0], form->lhs, form->m, form->k),
                          factored(program.nodes[node].operands[1], form->rhs, form->n, form->k)};
        const auto dtype = [&](int side) { return program.type(operands[side].codes).dtype; };
        const bool is_known = std::ranges::any_of(facts_.products, [&](const LibraryProduct &row) {
            return row.lhs == dtype(0) && row.rhs == dtype(1) && std::ranges::find(row.scales, ScaleLayouts()) != row.scales.end() &&
                   has_cards(row, facts_.cards);
        });
        const bool is_scaled = std::ranges::any_of(operands, [](const Factored &operand) { return operand.scales >= 0; });
        return is_known && is_scaled ? std::optional(operands) : std::nullopt;
    }

    bool takes_scales(int dot) const {
        return std::ranges::any_of(calls_.of(dot), [&](const MatmulCall &call) {
            return call.form.lhs.scales.value >= 0 && find_product(rewriter_.source(), call, facts_);
        });
    }

    /// `own`: the extent of the axis that is not contracted.
    Factored factored(ValueId operand, const MatmulOperand &form, const Extent &own, const Extent &k) const {
        const auto scaled = scaled_operand(rewriter_.source(), makers_, operand, form.k_contiguous ? own : k, form.k_contiguous ? k : own);
        if (!scaled) return {form.value};
        const Extent &block_of_own = form.k_contiguous ? scaled->scales.rows : scaled->scales.k;
        const Extent &block_of_k = form.k_contiguous ? scaled->scales.k : scaled->scales.rows;
        const bool is_tensor = block_of_own == own, is_vector = block_of_own == Extent(1);
        if (block_of_k != k || !(is_tensor || is_vector)) return {form.value};
        return {scaled->codes, scaled->scales.value, is_tensor};
    }

    void write(const Node &dot, const Operands &operands) {
        Node written = dot;
        const Type type = rewriter_.source().type(dot.results[0]);
        for (const size_t side : {0, 1}) {
            if (operands[side].scales < 0)
                written.operands[side] = rewriter_(dot.operands[side]);
            else
                written.operands[side] = widened(dot, operands[side].codes, rewriter_.source().type(dot.operands[side]).shape);
        }
        ValueId sum = add_node(rewriter_.result(), written, {type}, "")[0];
        for (const size_t side : {0, 1}) {
            if (operands[side].scales < 0) continue;
            const Extents own = operands[side].is_tensor ? Extents() : Extents{type.shape[side]};
            const std::vector<int64_t> axes = own.empty() ? std::vector<int64_t>() : std::vector<int64_t>{static_cast<int64_t>(side)};
            const ValueId scales = widened(dot, operands[side].scales, own);
            const ValueId factors = add(dot, "broadcast_in_dim", {scales}, broadcast_attributes(type.shape, axes), type);
            sum = add(dot, "mul", {sum, factors}, {}, type);
        }
        rewriter_.map(dot.results[0], sum);
    }

    /// Returns a source value converted to f32 and reshaped to `shape`.
    ValueId widened(const Node &like, ValueId old, const Extents &shape) {
        ValueId value = rewriter_(old);
        const Type from = rewriter_.source().type(old);
        if (from.shape != shape) value = add(like, "reshape", {value}, reshape_attributes(shape), {from.dtype, shape});
        if (from.dtype == Dtype::f32) return value;
        return add(like, "convert_element_type", {value}, convert_attributes(Dtype::f32), {Dtype::f32, shape});
    }

    ValueId add(const Node &like, const std::string &op, const std::vector<ValueId> &operands, const Attributes &attributes,
                const Type &type) {
        Node node = like;
        node.op = op;
        node.operands = operands;
        node.attributes = attributes;
        return add_node(rewriter_.result(), node, {type}, "")[0];
    }

    const TargetFacts &facts_;
    Rewriter rewriter_;
    const std::vector<int> makers_;
    const MatmulCalls calls_;
};

} // namespace

Program factor_scales(const Program &program, const TargetFacts &facts) {
    return facts.products.empty() ? program : ScaleFactoring(program, facts).run();
}

} // namespace scalide

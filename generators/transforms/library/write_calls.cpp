#include "transforms/library/write_calls.h"
#include "expr/base_operators.h"
#include "ir/rewrite.h"
#include "ir/shape.h"
#include "ir/text.h"
#include "transforms/analysis/graph.h"
#include "transforms/analysis/operators.h"
#include "transforms/library/library_call.h"
#include "transforms/library/operand_scales.h"
#include <algorithm>

namespace scalide {

namespace {

class CallWriter {
public:
    CallWriter(const Program &program, const TargetFacts &facts)
        : facts_(facts), rewriter_(program), source_(rewriter_.source()), makers_(producers(source_)),
          graph_(source_, facts.prepares_kernels) {}

    Program run() {
        find_calls();
        rewriter_.copy_arguments();
        for (int node = 0; node < static_cast<int>(source_.nodes.size()); ++node) {
            const auto call = call_of_.find(node);
            if (call == call_of_.end())
                rewriter_.copy(source_.nodes[node]);
            else if (source_.nodes[node].op == "dot_general")
                write_product(source_.nodes[node], call->second);
            else
                write_after(source_.nodes[node], call->second);
        }
        rewriter_.copy_results();
        return remove_dead_nodes(rewriter_.take());
    }

private:
    /// A matmul call, and the shape in which the library computes it.
    struct Call {
        MatmulCall call;
        const LibraryProduct *product;
        Extents own, shape; ///< shape of the product, and the padded shape of the call
    };

    void find_calls() {
        const auto is_stored = [&](ValueId value) { return graph_.producer(value) < 0 || !graph_.is_floating(graph_.producer(value)); };
        const MatmulCalls calls(source_, is_stored, MatmulCalls::Reshapes::pass);
        for (int node = 0; node < static_cast<int>(source_.nodes.size()); ++node) {
            if (source_.nodes[node].op == "dot_general") add_call(calls.of(node));
        }
    }

    /// Chooses the longest call that a library computes. Calls with scaled operands come last, so they are preferred.
    void add_call(const std::vector<MatmulCall> &possible) {
        std::optional<Call> call;
        const auto moves = [&](int node) { return source_.nodes[node].op == "reshape"; };
        for (const MatmulCall &longer : possible) {
            const LibraryProduct *product = find_product(source_, longer, facts_);
            const bool is_whole =
                !moves(longer.nodes.back()) && std::ranges::none_of(longer.nodes, [&](int node) { return call_of_.contains(node); });
            if (!product || !is_whole) continue;
            const Extents &own = source_.type(possible.front().result).shape;
            Call next{longer, product, own, own};
            for (auto extent = next.shape.end() - 2; extent != next.shape.end(); ++extent)
                *extent = fill(*extent, product->multiple).value_or(*extent);
            // A bias or an addend would need padding of its own.
            if (next.shape == own || (longer.bias < 0 && longer.addend < 0)) call = next;
        }
        if (!call) return;
        // If nothing is reshaped or padded, the nodes after the matmul stay unchanged.
        if (call->shape == call->own && std::ranges::none_of(call->call.nodes, moves)) {
            std::erase_if(call->call.nodes, [&](int node) { return source_.nodes[node].op != "dot_general"; });
        }
        for (const int node : call->call.nodes) call_of_.emplace(node, *call);
    }

    void write_product(const Node &dot, const Call &call) {
        const MatmulForm &form = call.call.form;
        DotAxes axes = dot_axes(dot);
        Node written = dot;
        if (call.call.operand_nodes.empty()) {
            written.operands = {operand(dot, 0, form.lhs, *call.product, {axes.lhs_contract, axes.lhs_batch}),
                                operand(dot, 1, form.rhs, *call.product, {axes.rhs_contract, axes.rhs_batch})};
        } else {
            const ScaleLayouts layouts = scale_layouts(source_, form).value();
            written.operands = {scaled_operand(dot, 0, form.lhs, {form.m, form.k}, layouts.lhs),
                                scaled_operand(dot, 1, form.rhs, {form.n, form.k}, layouts.rhs)};
        }
        const Type type{source_.type(dot.results[0]).dtype, call.shape};
        for (const auto &[name, value] : dot_attributes(axes, type.dtype)) written.attributes[name] = value;
        keep(dot.results[0], add_node(rewriter_.result(), written, {type}, source_.value_name(dot.results[0]))[0], call);
    }

    /// Emits the same arithmetic in the shape of the call.
    void write_after(const Node &node, const Call &call) {
        const ValueId result = node.results[0];
        if (node.op == "reshape") return keep(result, in_shape(node, node.operands[0], call.shape), call);
        Node written = node;
        for (ValueId &value : written.operands) value = in_shape(node, value, call.shape);
        const bool is_folded = source_.type(result).is_scalar();
        if (is_folded) written.attributes = reduce_attributes(count_up(std::ssize(call.shape)));
        const Type type{source_.type(result).dtype, is_folded ? Extents{} : call.shape};
        keep(result, add_node(rewriter_.result(), written, {type}, source_.value_name(result))[0], call);
    }

    /// Records a value of the call. Other nodes read it in its own shape.
    void keep(ValueId old, ValueId written, const Call &call) {
        written_[old] = written;
        rewriter_.result().values[written].part = source_.values[old].part;
        const Type &type = source_.type(old);
        const Node &maker = source_.nodes[makers_[old]];
        if (!type.is_scalar() && call.shape != call.own) {
            const SliceBounds bounds{Extents(call.own.size(), 0), call.own, std::vector<int64_t>(call.own.size(), 1)};
            written = add(maker, "slice", written, slice_attributes(bounds), {type.dtype, call.own});
        }
        if (!type.is_scalar() && type.shape != call.own) written = add(maker, "reshape", written, reshape_attributes(type.shape), type);
        rewriter_.map(old, written);
    }

    /// Returns a source value in the shape of a call. A scalar or a vector is broadcast, an array is reshaped.
    ValueId in_shape(const Node &like, ValueId old, const Extents &shape) {
        if (const auto known = written_.find(old); known != written_.end()) return known->second;
        const Node *maker = makers_[old] < 0 ? nullptr : &source_.nodes[makers_[old]];
        const Type type{source_.type(old).dtype, shape};
        if (maker && is_decoding(source_, *maker))
            return add(*maker, maker->op, in_shape(like, maker->operands[0], shape), maker->attributes, type);
        if (maker && maker->op == "mul") { // scales of rows times scales of columns
            const std::vector<ValueId> factors{in_shape(like, maker->operands[0], shape), in_shape(like, maker->operands[1], shape)};
            return add_node_like(*maker, maker->op, factors, {}, type);
        }
        if (maker && maker->op == "broadcast_in_dim") {
            ValueId value = rewriter_(maker->operands[0]);
            const Type from = rewriter_.result().type(value);
            if (from.is_scalar()) return add(*maker, maker->op, value, broadcast_attributes(shape, {}), type);
            const bool is_column = broadcast_axes(*maker).back() + 1 < source_.type(old).rank(); // a vector of row scales
            const int64_t axis = std::ssize(shape) - (is_column ? 2 : 1);
            const Type vector{from.dtype, {shape[axis]}};
            if (from != vector) value = add(*maker, "reshape", value, reshape_attributes(vector.shape), vector);
            return add(*maker, maker->op, value, broadcast_attributes(shape, {axis}), type);
        }
        const ValueId value = rewriter_(old);
        return source_.type(old).shape == shape ? value : add(like, "reshape", value, reshape_attributes(shape), type);
    }

    /// The axes of an operand of a dot_general.
    struct OperandAxes {
        std::vector<int64_t> &contract, &batch;
    };

    /// Returns an operand in the form that the library needs. `axes` are changed to its axes.
    ValueId operand(const Node &dot, int index, const MatmulOperand &form, const LibraryProduct &product, const OperandAxes &axes) {
        auto &[contract, batch] = axes;
        const Type type = source_.type(dot.operands[index]);
        Extents padded = type.shape;
        for (int64_t axis = 0; axis < type.rank(); ++axis)
            if (std::ranges::find(batch, axis) == batch.end()) padded[axis] = fill(padded[axis], product.multiple).value_or(padded[axis]);
        const Dtype stored = source_.type(form.value).dtype, read = product.through.value_or(stored);
        const bool lies_well = (!product.k_contiguous || form.k_contiguous) && padded == type.shape && read == stored;
        if (lies_well && is_in_memory(form.value)) return rewriter_(dot.operands[index]);
        std::vector<int64_t> order = count_up(type.rank());
        if (product.k_contiguous && !form.k_contiguous) {
            order = other_axes(type.rank(), contract);
            order.push_back(contract[0]);
        }
        for (std::vector<int64_t> *list : {&contract, &batch})
            for (int64_t &axis : *list) axis = std::ranges::find(order, axis) - order.begin();
        std::string key = std::to_string(form.value) + " " + to_string(Type{read, padded});
        for (const int64_t axis : order) key += " " + std::to_string(axis);
        const auto [known, is_new] = copies_.emplace(key, -1);
        if (is_new) known->second = copy(dot, form.value, {type.shape, order, padded, read});
        const Type copied = rewriter_.result().type(known->second);
        return copied.dtype == type.dtype
                   ? known->second
                   : add(dot, "convert_element_type", known->second, convert_attributes(type.dtype), {type.dtype, copied.shape});
    }

    /// Multiplies encoded values in memory by scales in the library's layout. No other node reads the result, so the call's kernel contains
    /// it.
    ValueId scaled_operand(const Node &dot, int index, const MatmulOperand &form, const Extents &shape, ScaleLayout layout) {
        const AppendNode append = [&](const std::string &op, const std::vector<ValueId> &operands, const Attributes &attributes,
                                      const Type &type) { return add_node_like(dot, op, operands, attributes, type); };
        const BlockScales &scales = form.scales;
        const Extents blocks = blocks_of(scales, shape[0], shape[1]);
        const Extents split{blocks[0], scales.rows, blocks[1], scales.k};
        const Type codes = source_.type(form.value);
        const auto wide = [&](ValueId value, Dtype dtype, const Extents &as) {
            if (dtype == Dtype::f32) return value;
            return append("convert_element_type", {value}, convert_attributes(Dtype::f32), {Dtype::f32, as});
        };
        const auto [known, is_new] = copies_.emplace(std::to_string(form.value) + " times scales", -1);
        if (is_new) known->second = in_memory(dot, form.value);
        ValueId factors = written_scales(dot, scales.value, blocks, layout, append);
        factors = wide(factors, source_.type(scales.value).dtype, blocks);
        factors = append("broadcast_in_dim", {factors}, broadcast_attributes(split, {0, 2}), {Dtype::f32, split});
        ValueId product = wide(known->second, codes.dtype, codes.shape);
        product = append("reshape", {product}, reshape_attributes(split), {Dtype::f32, split});
        product = append("mul", {product, factors}, {}, {Dtype::f32, split});
        const Type &type = source_.type(dot.operands[index]);
        return append("reshape", {product}, reshape_attributes(type.shape), type);
    }

    /// Returns scales in the order of their blocks, read from memory in the library's layout.
    ValueId written_scales(const Node &dot, ValueId scales, const Extents &blocks, ScaleLayout layout, const AppendNode &append) {
        const auto [known, is_new] = copies_.emplace(std::to_string(scales) + " " + std::string(to_string(layout)), -1);
        if (is_new && is_packed(blocks, layout)) {
            known->second = in_memory(dot, scales);
            const Type type = source_.type(scales);
            if (type.shape != blocks) known->second = append("reshape", {known->second}, reshape_attributes(blocks), {type.dtype, blocks});
        } else if (is_new) {
            known->second = pack_and_read(rewriter_(scales), source_.type(scales), blocks, layout, append);
        }
        return known->second;
    }

    /// Returns a source value, copied if it would otherwise not be stored.
    ValueId in_memory(const Node &dot, ValueId value) {
        const Type &type = source_.type(value);
        return is_in_memory(value) ? rewriter_(value) : add(dot, "reshape", rewriter_(value), reshape_attributes(type.shape), type);
    }

    /// The form of a copy: reshaped to `shape`, transposed by `order`, padded with zeros to `padded`, and converted to `read`.
    struct CopyForm {
        const Extents &shape;
        const std::vector<int64_t> &order;
        const Extents &padded;
        Dtype read;
    };

    /// Stores a copy of `stored`.
    /// Padding is applied in f32, because constants cannot have a low-precision dtype. If the value is rounded from f32, the unrounded
    /// value is padded and then rounded, in one kernel. Otherwise the widened value is padded.
    ValueId copy(const Node &dot, ValueId stored, const CopyForm &form) {
        const auto &[shape, order, padded, read] = form;
        const bool is_padded = padded != shape;
        const Dtype dtype = source_.type(stored).dtype;
        const Node *maker = makers_[stored] < 0 ? nullptr : &source_.nodes[makers_[stored]];
        const bool rounds = is_padded && maker && is_rounding(source_, *maker);
        ValueId value = rewriter_(rounds ? maker->operands[0] : stored);
        Type type = rewriter_.result().type(value);
        if (type.shape != shape) value = add(dot, "reshape", value, reshape_attributes(shape), type = {type.dtype, shape});
        Padding padding{Extents(shape.size(), 0), {}, std::vector<int64_t>(shape.size(), 0)};
        Extents after;
        for (size_t i = 0; i < order.size(); ++i) {
            type.shape[i] = shape[order[i]];
            after.push_back(padded[order[i]]);
            padding.high.push_back(after[i] - type.shape[i]);
        }
        if (!std::ranges::is_sorted(order)) value = add(dot, "transpose", value, transpose_attributes(order), type);
        if (is_padded) {
            if (type.dtype != Dtype::f32)
                value = add(dot, "convert_element_type", value, convert_attributes(Dtype::f32), {Dtype::f32, type.shape});
            const ValueId zero = add_node_like(dot, "constant", {}, constant_attributes(0, Dtype::f32), {Dtype::f32, {}});
            value = add_node_like(dot, "pad", {value, zero}, pad_attributes(padding), {Dtype::f32, after});
        }
        if (is_padded && dtype != Dtype::f32) {
            Attributes exact = convert_attributes(dtype);
            exact["overflow"] = "format"; // keeps infinities
            return add(dot, "convert_element_type", value, rounds ? maker->attributes : exact, {dtype, after});
        }
        if (read != dtype) value = add(dot, "convert_element_type", value, convert_attributes(read), {read, after});
        return add(dot, "reshape", value, reshape_attributes(after), {read, after});
    }

    ValueId add(const Node &like, const std::string &op, ValueId operand, Attributes attributes, const Type &type) {
        return add_node_like(like, op, {operand}, std::move(attributes), type);
    }

    ValueId add_node_like(const Node &like, const std::string &op, std::vector<ValueId> operands, Attributes attributes, const Type &type) {
        Node node = like;
        node.op = op;
        node.operands = std::move(operands);
        node.attributes = std::move(attributes);
        return add_node(rewriter_.result(), node, {type}, "")[0];
    }

    /// True for values that are always stored: arguments, rounded values, copies, and results of reductions, matmuls and similar operators.
    bool is_in_memory(ValueId value) const {
        const int maker = makers_[value];
        if (maker < 0) return true;
        const Node &node = source_.nodes[maker];
        const Shape shape = find_base_operator(node.op)->shape;
        const bool is_made_late = shape == Shape::elementwise || shape == Shape::movement || shape == Shape::source;
        return !is_made_late || is_rounding(source_, node) || is_copy(source_, node);
    }

    const TargetFacts &facts_;
    Rewriter rewriter_;
    const Program &source_;
    const std::vector<int> makers_;
    const FuseGraph graph_;
    std::map<int, Call> call_of_;           ///< by node of the source
    std::map<ValueId, ValueId> written_;    ///< by source value: the value in the shape of its call
    std::map<std::string, ValueId> copies_; ///< by copied value, axis order and padding
};

} // namespace

Program write_calls(const Program &program, const TargetFacts &facts) {
    return facts.products.empty() ? program : CallWriter(program, facts).run();
}

} // namespace scalide

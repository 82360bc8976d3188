#include "transforms/fuse_calls.h"
#include "expr/base_operators.h"
#include "ir/rewrite.h"
#include "ir/shape.h"
#include "transforms/fuse_overwrites.h"
#include "transforms/matmul_call.h"
#include "transforms/operators.h"
#include <algorithm>

namespace scalide {

namespace {

/// The row of the target's table for a dot_general; null when no library computes it.
const LibraryProduct *find_product(const Program &program, const Node &node, const TargetFacts &facts) {
    if (node.op != "dot_general" || facts.products.empty()) return nullptr;
    const auto form = matmul_form(program, node);
    if (!form) return nullptr;
    const Dtype lhs = program.type(form->lhs.value).dtype, rhs = program.type(form->rhs.value).dtype;
    const auto row = std::ranges::find_if(facts.products, [&](const LibraryProduct &p) { return p.lhs == lhs && p.rhs == rhs; });
    return row == facts.products.end() ? nullptr : &*row;
}

/// Rewrites dot_generals to read their operands as a library does.
class OperandWriter {
public:
    explicit OperandWriter(Rewriter &rewriter) : rewriter_(rewriter), source_(rewriter.source()), makers_(producers(source_)) {}

    void write(const Node &dot, const LibraryProduct &product) {
        const MatmulForm form = *matmul_form(source_, dot);
        DotAxes axes = dot_axes(dot);
        Node written = dot;
        const bool along_k = product.k_contiguous;
        written.operands = {operand(dot, 0, form.lhs, along_k, axes.lhs_contract, axes.lhs_batch),
                            operand(dot, 1, form.rhs, along_k, axes.rhs_contract, axes.rhs_batch)};
        const Type type = source_.type(dot.results[0]);
        written.attributes = dot_attributes(axes, type.dtype);
        rewriter_.map(dot.results[0], add_node(rewriter_.result(), written, {type}, source_.value_name(dot.results[0]))[0]);
    }

private:
    /// The axes are those of the operand that is returned.
    ValueId operand(const Node &dot, int index, const MatmulOperand &form, bool along_k, std::vector<int64_t> &contract,
                    std::vector<int64_t> &batch) {
        const ValueId value = dot.operands[index];
        const bool lies_well = !along_k || form.k_contiguous;
        if (lies_well && is_in_memory(form.value)) return rewriter_(value);
        const int maker = makers_[value];
        const bool decodes = maker >= 0 && is_decoding(source_, source_.nodes[maker]);
        const ValueId narrow = decodes ? source_.nodes[maker].operands[0] : value;
        std::vector<int64_t> order = count_up(source_.type(value).rank());
        if (!lies_well) {
            order = other_axes(std::ssize(order), contract);
            order.push_back(contract[0]);
        }
        for (std::vector<int64_t> *axes : {&contract, &batch})
            for (int64_t &axis : *axes) axis = std::ranges::find(order, axis) - order.begin();
        const auto [known, is_new] = copies_.emplace(std::pair(narrow, order), -1);
        if (is_new) known->second = copy(dot, rewriter_(narrow), order);
        return decodes ? add(dot, "convert_element_type", known->second, convert_attributes(Dtype::f32),
                             {Dtype::f32, rewriter_.result().type(known->second).shape})
                       : known->second;
    }

    ValueId copy(const Node &dot, ValueId value, const std::vector<int64_t> &order) {
        const Type from = rewriter_.result().type(value);
        Type type{from.dtype, {}};
        for (const int64_t axis : order) type.shape.push_back(from.shape[axis]);
        if (!std::ranges::is_sorted(order)) value = add(dot, "transpose", value, transpose_attributes(order), type);
        return add(dot, "reshape", value, reshape_attributes(type.shape), type);
    }

    ValueId add(const Node &dot, const std::string &op, ValueId operand, Attributes attributes, const Type &type) {
        Node node = dot;
        node.op = op;
        node.operands = {operand};
        node.attributes = std::move(attributes);
        return add_node(rewriter_.result(), node, {type}, "")[0];
    }

    /// Arguments, and what is stored in any case: reductions and the like, and what is rounded.
    bool is_in_memory(ValueId value) const {
        const int maker = makers_[value];
        if (maker < 0) return true;
        const Node &node = source_.nodes[maker];
        const Shape shape = find_base_operator(node.op)->shape;
        const bool is_made_late = shape == Shape::elementwise || shape == Shape::movement || shape == Shape::source;
        return !is_made_late || is_rounding(source_, node) || is_copy(source_, node);
    }

    Rewriter &rewriter_;
    const Program &source_;
    const std::vector<int> makers_;
    std::map<std::pair<ValueId, std::vector<int64_t>>, ValueId> copies_; ///< by what is copied and the order of its axes
};

/// What a library stores with that dtype, if it does all else that the call asks for.
bool stores(const LibraryProduct &product, const Program &program, const MatmulCall &call) {
    const auto is_among = [&](const std::vector<Dtype> &dtypes, ValueId value) {
        return value < 0 || std::ranges::find(dtypes, program.type(value).dtype) != dtypes.end();
    };
    return std::ranges::any_of(product.results, [&](const LibraryResult &row) {
        return row.dtype == program.type(call.result).dtype && call.overflow.value_or(row.overflow) == row.overflow &&
               is_among(row.bias, call.bias) && is_among(row.addend, call.addend) &&
               (row.is_scaled || (call.result_factor < 0 && call.amax < 0));
    });
}

/// True when the nodes of a call may be one group: none is another library's, nothing else runs between them, and an argument that one of
/// them overwrites is not read by the others.
bool are_one_call(const Groups &groups, int call, const std::vector<int> &nodes) {
    std::set<int> members;
    for (int node : nodes) members.insert(groups.group_of(node));
    const auto is_free = [&](int member) { return member == call || groups[member].library.empty(); };
    const auto leads_back = [&](int next) {
        return !members.contains(next) && std::ranges::any_of(members, [&](int member) { return groups.has_path(next, member); });
    };
    const auto is_left = [&](int member) { return std::ranges::any_of(groups.after(member), leads_back); };
    return std::ranges::all_of(members, is_free) && std::ranges::none_of(members, is_left) && overwrites_safely(groups, nodes);
}

} // namespace

Program store_call_operands(const Program &program, const TargetFacts &facts) {
    if (facts.products.empty()) return program;
    Rewriter rewriter(program);
    rewriter.copy_arguments();
    OperandWriter writer(rewriter);
    for (const Node &node : program.nodes) {
        if (const LibraryProduct *product = find_product(program, node, facts))
            writer.write(node, *product);
        else
            rewriter.copy(node);
    }
    rewriter.copy_results();
    return rewriter.take();
}

void merge_calls(Groups &groups, const TargetFacts &facts) {
    const Program &program = groups.program();
    const FuseGraph &graph = groups.graph();
    const MatmulCalls calls(program, [&](ValueId value) { return graph.producer(value) < 0 || !graph.is_floating(graph.producer(value)); });
    for (int group = 0; group < groups.size(); ++group) {
        if (!groups.is_alive(group) || groups[group].kind != KernelKind::contract) continue;
        const int dot = groups[group].nodes[0];
        const LibraryProduct *product = find_product(program, program.nodes[dot], facts);
        if (!product) continue;
        groups.set_library(group, product->library);
        const std::vector<MatmulCall> possible = calls.of(dot);
        const auto anchored = [&](const MatmulCall &call) {
            std::vector<int> nodes = call.nodes;
            std::erase_if(nodes, [&](int node) { return graph.is_floating(node); });
            return nodes;
        };
        const auto longest = std::find_if(possible.rbegin(), possible.rend(), [&](const MatmulCall &call) {
            return stores(*product, program, call) && are_one_call(groups, group, anchored(call));
        });
        if (longest == possible.rend()) continue;
        for (int node : anchored(*longest))
            if (groups.group_of(node) != group) groups.merge(group, groups.group_of(node), Group(groups[group]));
    }
}

} // namespace scalide

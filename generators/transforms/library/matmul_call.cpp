#include "transforms/library/matmul_call.h"
#include "transforms/analysis/costs.h"
#include "transforms/analysis/operators.h"
#include "transforms/library/operand_scales.h"
#include <algorithm>

namespace scalide {

MatmulCalls::MatmulCalls(const Program &program, std::function<bool(ValueId)> is_stored, Reshapes reshapes)
    : program_(program), is_stored_(std::move(is_stored)), reshapes_(reshapes), makers_(producers(program)),
      readers_(program.values.size()), is_result_(program.values.size()) {
    for (int node = 0; node < static_cast<int>(program.nodes.size()); ++node)
        for (const ValueId operand : program.nodes[node].operands)
            if (readers_[operand].empty() || readers_[operand].back() != node) readers_[operand].push_back(node);
    for (const Result &result : program.results) is_result_[result.value] = true;
}

std::vector<MatmulCall> MatmulCalls::of(int dot) const {
    const auto form = matmul_form(program_, makers_, program_.nodes[dot]);
    if (!form) return {};
    MatmulCall product;
    product.form = *form;
    product.result = program_.nodes[dot].results[0];
    product.nodes = {dot};
    const Attributes &attributes = program_.nodes[dot].attributes;
    const auto says = [&](const char *name, const char *word) {
        const auto found = attributes.find(name);
        return found != attributes.end() && found->second.word == word;
    };
    product.fast_accumulation = says("accumulation", "fast");
    product.tf32 = says("precision", "tf32");
    std::vector<MatmulCall> calls;
    add_calls(calls, product);
    if (const auto scaled = scaled_form(program_, makers_, program_.nodes[dot])) {
        product.form = scaled->form;
        product.operand_nodes = scaled->muls;
        add_calls(calls, product);
    }
    return calls;
}

void MatmulCalls::add_calls(std::vector<MatmulCall> &calls, MatmulCall product) const {
    for (std::optional<MatmulCall> next = std::move(product); next; next = extended(calls.back())) {
        std::ranges::sort(next->nodes);
        calls.push_back(std::move(*next));
    }
}

std::optional<MatmulCall> MatmulCalls::with_packed_scales(const MatmulCall &call) const {
    MatmulCall packed = call;
    const auto layouts = scale_layouts(program_, call.form);
    const auto pack = [&](MatmulOperand &operand, const Extent &rows, ScaleLayout layout) {
        if (layout == ScaleLayout::none) return true;
        operand.scales.value = packed_scales(program_, makers_, operand.scales.value, blocks_of(operand.scales, rows, call.form.k), layout);
        return operand.scales.value >= 0 && is_stored_(operand.scales.value) && is_stored_(operand.value);
    };
    const bool is_good = layouts && pack(packed.form.lhs, call.form.m, layouts->lhs) && pack(packed.form.rhs, call.form.n, layouts->rhs);
    return is_good ? std::optional(packed) : std::nullopt;
}

std::optional<MatmulCall> MatmulCalls::extended(const MatmulCall &call) const {
    if (call.overflow || is_result_[call.result]) return {};
    if (auto last = narrowed(call)) return last;
    if (!is_only_read_by(call.result, 1)) return {};
    const int reader = readers_[call.result][0];
    const std::string &op = program_.nodes[reader].op;
    if (op == "mul") return multiplied(call, reader);
    if (op == "add") return added(call, reader);
    if (op != "reshape" || reshapes_ == Reshapes::end || is_copy(program_, program_.nodes[reader])) return {};
    MatmulCall next = call;
    next.result = program_.nodes[reader].results[0];
    next.nodes.push_back(reader);
    return next;
}

/// Multiplies the sum by a scalar, or by one scale for each row and one for each column. Nothing may have been added before.
std::optional<MatmulCall> MatmulCalls::multiplied(const MatmulCall &call, int node) const {
    if (call.factor >= 0 || call.bias >= 0 || call.addend >= 0 || !call.operand_nodes.empty()) return {};
    const ValueId other = other_operand(node, call.result);
    MatmulCall next = call;
    next.result = program_.nodes[node].results[0];
    next.nodes.push_back(node);
    if (scale_rows(next, other)) return next;
    next.factor = scalar_of(other);
    const bool has_scales = call.form.lhs.scales.value >= 0 || call.form.rhs.scales.value >= 0;
    if (next.factor >= 0) return has_scales ? std::nullopt : std::optional(next);
    const int maker = makers_[other];
    if (maker < 0 || program_.nodes[maker].op != "mul" || !is_only_read_by(other, 1)) return {};
    next.nodes.push_back(maker);
    const std::vector<ValueId> &vectors = program_.nodes[maker].operands;
    return scale_rows(next, vectors[0]) && scale_rows(next, vectors[1]) ? std::optional(next) : std::nullopt;
}

/// Uses a factor with one value for each row, or each column, of the result as scales of an operand's rows.
bool MatmulCalls::scale_rows(MatmulCall &call, ValueId value) const {
    MatmulForm &form = call.form;
    if (form.batch != Extent(1)) return false;
    const struct {
        BlockScales &scales;
        ValueId vector;
    } sides[] = {{form.lhs.scales, vector_of(value, form.m, Side::rows)}, {form.rhs.scales, vector_of(value, form.n, Side::columns)}};
    for (const auto &[scales, vector] : sides) {
        if (vector < 0 || scales.value >= 0) continue;
        scales = {vector, 1, form.k};
        return true;
    }
    return false;
}

/// Adds a vector to each row, an array, or an array times a scalar. A call has at most one of each.
std::optional<MatmulCall> MatmulCalls::added(const MatmulCall &call, int node) const {
    const ValueId other = other_operand(node, call.result);
    MatmulCall next = call;
    next.result = program_.nodes[node].results[0];
    next.nodes.push_back(node);
    if (other == call.result) return {};
    if (const ValueId vector = vector_of(other, call.form.n, Side::columns); vector >= 0) {
        next.bias = vector;
        return call.bias < 0 ? std::optional(next) : std::nullopt;
    }
    if (call.addend >= 0) return {};
    const int maker = makers_[other];
    if (maker >= 0 && program_.nodes[maker].op == "mul" && is_only_read_by(other, 1)) {
        for (const ValueId factor : program_.nodes[maker].operands) {
            next.addend_factor = scalar_of(factor);
            next.addend = next.addend_factor < 0 ? -1 : stored(other_operand(maker, factor));
            if (next.addend < 0) continue;
            next.nodes.push_back(maker);
            return next;
        }
        next.addend_factor = -1;
    }
    next.addend = stored(other);
    return next.addend < 0 ? std::nullopt : std::optional(next);
}

/// Converts the result. For f8, a multiplication by a scalar may come first, and the amax may be computed before it.
std::optional<MatmulCall> MatmulCalls::narrowed(const MatmulCall &call) const {
    MatmulCall next = call;
    std::vector<int> readers = readers_[call.result];
    const auto magnitude = std::ranges::find_if(readers, [&](int node) { return program_.nodes[node].op == "abs"; });
    if (magnitude != readers.end()) {
        const int maximum = amax_of(*magnitude);
        if (maximum < 0) return {};
        next.amax = program_.nodes[maximum].results[0];
        next.nodes.insert(next.nodes.end(), {*magnitude, maximum});
        readers.erase(magnitude);
    }
    if (readers.size() != 1) return {};
    int node = readers[0];
    if (program_.nodes[node].op == "mul") {
        const ValueId product = program_.nodes[node].results[0];
        next.result_factor = scalar_of(other_operand(node, call.result));
        next.nodes.push_back(node);
        if (next.result_factor < 0 || next.result_factor == next.amax || !is_only_read_by(product, 1)) return {};
        node = readers_[product][0];
        if (size_of(program_.type(program_.nodes[node].results[0]).dtype) != 1) return {}; // that would be a factor of the sum
    }
    if (!is_rounding(program_, program_.nodes[node])) return {};
    next.overflow = overflow_of(program_.nodes[node].attributes);
    next.result = program_.nodes[node].results[0];
    next.nodes.push_back(node);
    return next;
}

bool MatmulCalls::is_only_read_by(ValueId value, size_t readers) const { return !is_result_[value] && readers_[value].size() == readers; }

ValueId MatmulCalls::other_operand(int node, ValueId value) const {
    const std::vector<ValueId> &operands = program_.nodes[node].operands;
    return operands[0] == value ? operands[1] : operands[0];
}

/// Returns the array in memory of which a value is a widened or reshaped form; -1: there is none.
ValueId MatmulCalls::stored(ValueId value) const {
    while (!is_stored_(value)) {
        const Node &node = program_.nodes[makers_[value]];
        if (!is_decoding(program_, node) && (node.op != "reshape" || is_copy(program_, node))) return -1;
        value = node.operands[0];
    }
    return value;
}

/// Returns the rank-0 f32 in memory of which a value is a broadcast; -1: there is none.
ValueId MatmulCalls::scalar_of(ValueId value) const {
    const int maker = makers_[value];
    if (maker < 0 || program_.nodes[maker].op != "broadcast_in_dim") return -1;
    const ValueId scalar = program_.nodes[maker].operands[0];
    return program_.type(scalar) == Type{Dtype::f32, {}} && is_stored_(scalar) ? scalar : -1;
}

/// Returns the vector in memory of which a value is a broadcast; -1: there is none. With Side::rows, the vector has one element for each
/// row (leading axes); with Side::columns, one for each column (trailing axes).
ValueId MatmulCalls::vector_of(ValueId value, const Extent &elements, Side side) const {
    const int64_t rank = program_.type(value).rank();
    while (makers_[value] >= 0 && is_decoding(program_, program_.nodes[makers_[value]])) value = program_.nodes[makers_[value]].operands[0];
    if (makers_[value] < 0 || program_.nodes[makers_[value]].op != "broadcast_in_dim") return -1;
    const Node &node = program_.nodes[makers_[value]];
    const Extents &shape = program_.type(node.operands[0]).shape;
    Extent count(1);
    for (const Extent &extent : shape) count = count * extent;
    std::vector<int64_t> axes = count_up(std::ssize(shape));
    if (side == Side::columns) axes = other_axes(rank, count_up(rank - std::ssize(shape)));
    return !shape.empty() && count == elements && broadcast_axes(node) == axes ? stored(node.operands[0]) : -1;
}

/// Returns the node that computes the amax from these magnitudes and is their only reader; -1: there is none.
int MatmulCalls::amax_of(int magnitude) const {
    const ValueId magnitudes = program_.nodes[magnitude].results[0];
    if (!is_only_read_by(magnitudes, 1)) return -1;
    const int reader = readers_[magnitudes][0];
    return program_.nodes[reader].op == "reduce_max" && program_.type(program_.nodes[reader].results[0]).is_scalar() ? reader : -1;
}

} // namespace scalide

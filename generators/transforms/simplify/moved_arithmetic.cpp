#include "transforms/simplify/moved_arithmetic.h"
#include "transforms/analysis/operators.h"
#include <algorithm>
#include <ranges>

namespace scalide {

namespace {

/// The reshapes and transposes between a value and `source`, starting with the last.
struct Moved {
    ValueId source;
    std::vector<Node> moves;
};

Moved moved(const Candidate &at, ValueId value) {
    Moved found{value, {}};
    while (const Node *node = at.facts.producer(found.source)) {
        if (node->op != "reshape" && node->op != "transpose") break;
        found.moves.push_back(*node);
        found.source = node->operands[0];
    }
    return found;
}

ValueId move_again(const Candidate &at, const Moved &moved, ValueId value) {
    for (const Node &move : std::views::reverse(moved.moves)) value = at.emit(move.op, {value}, move.attributes);
    return value;
}

bool is_narrowing(const Candidate &at) {
    const Dtype from = at.operand_type().dtype, to = at.type.dtype;
    return is_float(from) && is_float(to) && size_of(to) < size_of(from);
}

/// A value times a scalar.
struct Scaled {
    ValueId value, factor; ///< factor: rank 0; -1: there is none
};

Scaled scaled(const Candidate &at, const Node &mul) {
    for (const size_t side : {0, 1}) {
        const ValueId factor = at.facts.scalar_source(mul.operands[1 - side]);
        if (factor >= 0) return {mul.operands[side], factor};
    }
    return {-1, -1};
}

ValueId multiply(const Candidate &at, ValueId value, ValueId factor) {
    const Extents &shape = at.facts.program().type(value).shape;
    return at.emit("mul", {value, at.emit("broadcast_in_dim", {factor}, broadcast_attributes(shape, {}))}, {});
}

/// A matmul result times a scalar.
std::optional<ValueId> multiply_before(const Candidate &at) {
    const auto [value, factor] = scaled(at, at.node);
    if (factor < 0) return {};
    const Moved by = moved(at, value);
    if (by.moves.empty() || at.facts.producer(by.source, "dot_general") == nullptr) return {};
    return move_again(at, by, multiply(at, by.source, factor));
}

/// True for a matmul result, also if it is scaled or something is added. The matmul kernel computes such values.
bool is_from_product(const Candidate &at, ValueId value, int depth = 4) {
    const Node *node = at.facts.producer(value);
    if (node == nullptr || depth == 0) return false;
    if (node->op == "dot_general") return true;
    if (node->op != "mul" && node->op != "add" && node->op != "sub") return false;
    const std::vector<ValueId> operands = node->operands;
    return std::ranges::any_of(operands, [&](ValueId operand) { return is_from_product(at, operand, depth - 1); });
}

/// Returns `value` in `shape`, so that a reshape to the candidate's shape gives `value` again. An array in memory is reshaped. A vector
/// that is broadcast along the last axis, which both shapes have, is broadcast to `shape`. Returns nothing for values that a kernel would
/// compute along other axes.
std::optional<ValueId> reshape_back(const Candidate &at, ValueId value, const Extents &shape) {
    const Node *node = at.facts.producer(value);
    if (node == nullptr || node->op == "reshape") return at.emit("reshape", {value}, reshape_attributes(shape));
    if (node->op != "broadcast_in_dim" || shape.empty() || shape.back() != at.type.shape.back()) return {};
    const ValueId vector = node->operands[0];
    const std::vector<int64_t> axes = broadcast_axes(*node);
    if (!axes.empty() && axes != std::vector<int64_t>{at.type.rank() - 1}) return {};
    const auto last = static_cast<int64_t>(shape.size()) - 1;
    return at.emit("broadcast_in_dim", {vector},
                   broadcast_attributes(shape, axes.empty() ? std::vector<int64_t>() : std::vector<int64_t>{last}));
}

/// A bias or a residual that is added to a matmul result.
std::optional<ValueId> add_before(const Candidate &at) {
    for (const size_t side : {0, 1}) {
        const Node *reshape = at.facts.producer(at.node.operands[side], "reshape");
        if (reshape == nullptr || !is_from_product(at, reshape->operands[0])) continue;
        const ValueId product = reshape->operands[0];
        const auto other = reshape_back(at, at.node.operands[1 - side], Extents(at.facts.program().type(product).shape));
        if (!other) continue;
        const ValueId sum = at.emit(at.node.op, side == 0 ? std::vector{product, *other} : std::vector{*other, product}, {});
        return at.emit("reshape", {sum}, reshape_attributes(at.type.shape));
    }
    return {};
}

/// A conversion to fewer bits, perhaps of a value times a scalar.
std::optional<ValueId> round_before(const Candidate &at) {
    if (!is_narrowing(at)) return {};
    const Node *mul = at.facts.producer(at.operand(), "mul");
    const Scaled by_number = mul == nullptr ? Scaled{-1, -1} : scaled(at, *mul);
    const Moved by = moved(at, by_number.factor < 0 ? at.operand() : by_number.value);
    if (by.moves.empty()) return {};
    const ValueId source = by_number.factor < 0 ? by.source : multiply(at, by.source, by_number.factor);
    return move_again(at, by, at.emit("convert_element_type", {source}, at.node.attributes));
}

/// The maximum over all elements does not depend on their order. They may be converted after the movement, and have an absolute value.
std::optional<ValueId> reduce_before(const Candidate &at) {
    std::vector<Node> around;
    ValueId inner = at.operand();
    for (const std::string_view op : {"abs", "convert_element_type"})
        if (const Node *node = at.facts.producer(inner, op)) {
            around.push_back(*node);
            inner = node->operands[0];
        }
    const Moved by = moved(at, inner);
    if (!at.type.is_scalar() || by.moves.empty()) return {};
    ValueId source = by.source;
    for (const Node &node : std::views::reverse(around)) source = at.emit(node.op, {source}, node.attributes);
    return at.emit(at.node.op, {source}, reduce_attributes(count_up(at.facts.program().type(source).rank())));
}

struct MoveRow {
    std::string_view op;
    std::optional<ValueId> (*move)(const Candidate &);
};

constexpr MoveRow move_rows[] = {{"mul", multiply_before},      {"add", add_before},
                                 {"sub", add_before},           {"convert_element_type", round_before},
                                 {"reduce_max", reduce_before}, {"reduce_min", reduce_before}};

} // namespace

std::optional<ValueId> move_later(const Candidate &candidate) {
    const auto *row = std::ranges::find(move_rows, candidate.node.op, &MoveRow::op);
    return row == std::end(move_rows) ? std::nullopt : row->move(candidate);
}

} // namespace scalide

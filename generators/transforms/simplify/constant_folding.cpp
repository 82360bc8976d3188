#include "transforms/simplify/constant_folding.h"
#include "ir/evaluation.h"
#include <algorithm>
#include <cmath>

namespace scalide {

namespace {

using Number = std::optional<double>;

/// Returns `value` as an element of `dtype`. Returns nothing if it would overflow or wrap around, because attributes decide what happens
/// then.
Number stored(Dtype dtype, double value) {
    if (dtype == Dtype::boolean || dtype == Dtype::f64) return value;
    if (dtype == Dtype::i64 && value >= 0x1p63) return std::nullopt;
    if (is_integer(dtype)) return saturate_integer(dtype, value) == value ? Number(value) : std::nullopt;
    const FormatSpec &format = format_of(dtype);
    const bool fits = dtype == Dtype::f32 || std::isnan(value) || std::fabs(value) <= decode(format, format.max_code);
    return fits ? Number(round_to(dtype, value)) : std::nullopt;
}

Number convert(Dtype to, double value) {
    if (to == Dtype::boolean) return value != 0 ? 1.0 : 0.0;
    return stored(to, is_integer(to) ? std::trunc(value) : value);
}

Number fold_elementwise(const Node &node, const BaseOperator &op, Dtype operand, std::span<const double> operands) {
    const Evaluation evaluate(op, operand, node.attributes);
    std::vector<double> values(operands.begin(), operands.end());
    values.insert(values.end(), evaluate.further_arguments().begin(), evaluate.further_arguments().end());
    return evaluate(values);
}

/// Reduces `count` equal numbers.
Number fold_equal(const BaseOperator &op, double value, double count) {
    if (op.fold == "add") return count == 0 ? 0 : 0 + value * count; // sums start from +0
    if (count == 0 || !base_operator(op.fold).is_idempotent) return std::nullopt;
    return op.gives_place ? 0 : value;
}

Number fold_reduce(const BaseOperator &op, const Extents &from, const Extents &to, double value) {
    if (!element_count(from).is_static() || !element_count(to).is_static()) return std::nullopt;
    const int64_t results = element_count(to).value();
    return results == 0 ? std::nullopt : fold_equal(op, value, static_cast<double>(element_count(from).value() / results));
}

bool same_bits(double a, double b) { return (a == b && std::signbit(a) == std::signbit(b)) || (std::isnan(a) && std::isnan(b)); }

/// All elements that may be moved into the result must be one number: those of all operands, and the fill value of a gather.
Number fold_movement(const Node &node, std::span<const double> operands) {
    const auto is_first = [&](double other) { return same_bits(other, operands[0]); };
    const auto fill = node.attributes.find("fill_value");
    if (fill != node.attributes.end() && !is_first(to_number(fill->second))) return std::nullopt;
    return std::ranges::all_of(operands, is_first) ? Number(operands[0]) : std::nullopt;
}

} // namespace

std::optional<double> fold_constants(const Program &program, const Node &node, const Type &result, std::span<const double> operands) {
    if (node.op == "constant") return to_number(node.attributes.at("value"));
    const BaseOperator *op = find_base_operator(node.op);
    if (op == nullptr || operands.empty()) return std::nullopt;
    const Type &first = program.type(node.operands[0]);
    Number value;
    switch (op->shape) {
    case Shape::elementwise:
        if (op->name == "convert_element_type") return convert(result.dtype, operands[0]);
        if (op->evaluate != nullptr) value = fold_elementwise(node, *op, program.type(node.operands.back()).dtype, operands);
        break;
    case Shape::movement: value = fold_movement(node, operands); break;
    case Shape::reduce: value = fold_reduce(*op, first.shape, result.shape, operands[0]); break;
    case Shape::source:
    case Shape::scan:
    case Shape::scatter:
    case Shape::sort:
    case Shape::contract:
    case Shape::window:
    case Shape::collective: break;
    }
    return value ? stored(result.dtype, *value) : std::nullopt;
}

} // namespace scalide

#include "lower/math/arithmetic_choice.h"
#include "expr/base_operators.h"
#include <algorithm>
#include <ranges>

namespace scalide {

namespace {

constexpr int bits_of_rounded = 11, bits_of_stored = 8; ///< significant bits of the widest formats

/// What a conversion permits for its operand.
Arithmetic before_conversion(Dtype dtype) {
    if (!is_float(dtype) || !is_narrow(dtype)) return Arithmetic::device;
    const int bits = format_of(dtype).mantissa_bits + 1;
    return bits <= bits_of_stored ? Arithmetic::stored : bits <= bits_of_rounded ? Arithmetic::rounded : Arithmetic::device;
}

/// What a node permits for its operands.
Arithmetic before(const Node &node, const Program &kernel, const std::vector<Arithmetic> &known) {
    if (node.op == "convert_element_type") return before_conversion(kernel.type(node.results[0]).dtype);
    const BaseOperator *op = find_base_operator(node.op);
    if (op != nullptr && op->shape == Shape::movement) return known[node.results[0]];
    if (op != nullptr && op->keeps_relative_errors) return std::min(known[node.results[0]], Arithmetic::rounded);
    return Arithmetic::device;
}

} // namespace

std::vector<Arithmetic> choose_arithmetic(const Program &kernel) {
    std::vector<Arithmetic> known(kernel.values.size(), Arithmetic::stored);
    for (const Result &result : kernel.results) known[result.value] = Arithmetic::device;
    for (const Node &node : kernel.nodes | std::views::reverse) {
        const Arithmetic permitted = before(node, kernel, known);
        for (const ValueId operand : node.operands) known[operand] = std::min(known[operand], permitted);
    }
    for (size_t value = 0; value < known.size(); value++)
        if (kernel.type(ValueId(value)).is_scalar()) known[value] = Arithmetic::exact;
    return known;
}

} // namespace scalide

#include "lower/values/source_dtype.h"
#include "ir/rewrite.h"
#include <algorithm>
#include <array>
#include <cmath>

namespace scalide {

namespace {

constexpr std::array<std::string_view, 5> moves = {"broadcast_in_dim", "reshape", "transpose", "rev", "slice"};

constexpr std::array<std::string_view, 5> choices = {"max", "min", "select_n", "neg", "abs"};

bool is_move(const Node &node) { return std::ranges::find(moves, node.op) != moves.end(); }

/// The bits of a dtype.
int significant_bits(Dtype dtype) {
    if (dtype == Dtype::f64) return 53;
    return is_float(dtype) ? format_of(dtype).mantissa_bits + 1 : bits_of(dtype);
}

/// The bits of a constant: 0 for zero, infinities and NaN, 1 for powers of two.
int significant_bits(double number) {
    if (!std::isfinite(number)) return 0;
    int exponent = 0, bits = 0;
    for (double rest = std::frexp(number, &exponent); rest != 0; bits++) rest = 2 * rest - std::trunc(2 * rest);
    return bits;
}

/// True if each element of the result is an element of an operand, or its negative.
bool chooses(const Node &node) { return std::ranges::find(choices, node.op) != choices.end(); }

} // namespace

int significant_bits(const Program &program, ValueId value) {
    std::vector<int> bits;
    for (const Value &each : program.values) bits.push_back(significant_bits(each.type.dtype));
    for (const Node &node : program.nodes) {
        const auto of = [&](size_t operand) { return bits[size_t(node.operands[operand])]; };
        int &result = bits[size_t(node.results[0])];
        if (is_move(node) || node.op == "convert_element_type") result = std::min(result, of(0));
        if (node.op == "constant") result = std::min(result, significant_bits(to_number(node.attributes.at("value"))));
        if (chooses(node)) {
            int most = 0;
            for (size_t i = node.op == "select_n"; i < node.operands.size(); i++) most = std::max(most, of(i));
            result = std::min(result, most);
        }
        // One bit is a power of two, which changes only the exponent. Other significands are integers: their products have the bits of
        // both.
        if (node.op == "mul") result = std::min(result, of(0) == 1 || of(1) == 1 ? std::max(of(0), of(1)) : of(0) + of(1));
    }
    return bits[size_t(value)];
}

ValueId source_of_moves(const Program &program, ValueId value) {
    const std::vector<int> producer = producers(program);
    while (producer[value] >= 0 && is_move(program.nodes[producer[value]])) value = program.nodes[producer[value]].operands[0];
    return value;
}

Dtype source_dtype(const Program &program, ValueId value) {
    const int producer = producers(program)[source_of_moves(program, value)];
    const bool is_converted = producer >= 0 && program.nodes[producer].op == "convert_element_type";
    return program.type(is_converted ? program.nodes[producer].operands[0] : value).dtype;
}

} // namespace scalide

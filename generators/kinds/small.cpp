#include "kinds/small.h"
#include "kinds/kernel_view.h"
#include <algorithm>

// small: everything of a straight program with small arrays, for steps of loops.
namespace scalide {

namespace {

/// Returns the number of elements; -1 if it is not known.
int64_t count_of(const Type &type) {
    const Extent count = element_count(type.shape);
    return count.is_static() ? count.value() : -1;
}

bool exceeds(const Type &type, int64_t most) {
    const int64_t count = count_of(type);
    return count < 1 || count > most;
}

const Node *producer(const Program &program, ValueId value) {
    const auto found = std::ranges::find_if(program.nodes, [&](const Node &node) { return node.results[0] == value; });
    return found == program.nodes.end() ? nullptr : &*found;
}

/// True if the value is a movement of a decoded low-precision float.
bool is_low_precision(const Program &program, ValueId value) {
    for (const Node *node = producer(program, value); node != nullptr && !is_narrow(program.type(value).dtype);) {
        const BaseOperator &op = base_operator(node->op);
        if (!converts(op) && op.shape != Shape::movement) break;
        value = node->operands[0];
        node = producer(program, value);
    }
    return is_narrow(program.type(value).dtype);
}

/// Returns the product of these extents, which are numbers.
int64_t count_along(const Type &type, const std::vector<int64_t> &axes) {
    int64_t count = 1;
    for (const int64_t axis : axes) count *= type.shape[static_cast<size_t>(axis)].value();
    return count;
}

/// The classes `column` and `contract` divide longer sums into blocks, which bounds the error of an accumulator.
constexpr int64_t most_rows = 128, most_depth = 1024;

std::string why_no_small_reduction(const Program &program, const Node &reduction) {
    const int64_t rows = count_along(program.type(reduction.operands[0]), reduced_axes(reduction));
    if (reduces_trailing(program, reduction) || rows <= most_rows) return "";
    return "a reduction of at most " + std::to_string(most_rows) + " rows";
}

std::string why_no_small_matmul(const Program &program, const Node &dot) {
    if (std::ranges::any_of(dot.operands, [&](ValueId operand) { return is_low_precision(program, operand); }))
        return "a matmul of numbers of 32 bits, because class contract adds products of low-precision numbers in pairs";
    const int64_t depth = count_along(program.type(dot.operands[0]), to_integers(dot.attributes.at("contract").list[0]));
    if (depth > most_depth) return "a matmul over at most " + std::to_string(most_depth) + " terms";
    if (depth * count_of(program.type(dot.results[0])) > most_small_products)
        return "a matmul of at most " + std::to_string(most_small_products) + " products";
    return "";
}

} // namespace

std::string why_not_small(const Program &program, const Node &node) {
    const Shape shape = base_operator(node.op).shape;
    const bool is_known = shape == Shape::elementwise || shape == Shape::movement || shape == Shape::source || shape == Shape::reduce ||
                          shape == Shape::contract;
    if (!is_known) return "an elementwise operator, movement, a source, a reduction or a matmul";
    const bool adds = shape == Shape::reduce || shape == Shape::contract;
    const auto is_large = [&](ValueId value) { return exceeds(program.type(value), most_small_elements); };
    if (std::ranges::any_of(node.results, is_large) || (adds && std::ranges::any_of(node.operands, is_large)))
        return "an operator on arrays of 1 to " + std::to_string(most_small_elements) + " elements with static extents";
    if (shape == Shape::reduce) return why_no_small_reduction(program, node);
    return shape == Shape::contract ? why_no_small_matmul(program, node) : "";
}

std::string why_no_small(const KernelView &kernel) {
    for (const Node &node : kernel.nodes())
        if (const std::string why = why_not_small(kernel.program(), node); !why.empty())
            return say(kernel, node, "must be " + why, node.op + " " + say_shape(kernel.shape(node)));
    for (const Result &result : kernel.program().results)
        if (result.argument >= 0) return kernel.program().name + "." + result.name + ": must not overwrite an argument, got inout";
    return "";
}

} // namespace scalide

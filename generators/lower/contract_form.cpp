#include "lower/contract_form.h"
#include "ir/rewrite.h"
#include "ir/window.h"
#include "lower/lower.h"
#include "lower/products/contract.h"
#include "lower/values/source_dtype.h"
#include "lower/windows/convolution_form.h"
#include <algorithm>

namespace scalide {

namespace {

/// The words of a form: in the name of its rate, and its instruction on x86. Other CPUs have other names.
struct MultiplyWords {
    MultiplyBy by;
    bool sums_floats;
    std::string_view rate, instructions;
};
constexpr MultiplyWords multiply_words[] = {
    {MultiplyBy::f32, true, "decoded", ""},
    {MultiplyBy::bf16_pairs, true, "pairs", "vdpbf16ps"},
    {MultiplyBy::i16_pairs, false, "i16_pairs", "vpmaddwd"},
    {MultiplyBy::byte_quads, false, "quads", "vpdpbusd"},
    {MultiplyBy::tiles, true, "tiles", "AMX tdpbf16ps"},
    {MultiplyBy::tiles, false, "tiles", "AMX tdpbssd"},
};

const MultiplyWords *words_of(const ProductForm &form) {
    const auto is_asked = [&](const MultiplyWords &words) { return words.by == form.by && words.sums_floats == form.sums_floats; };
    const auto *found = std::ranges::find_if(multiply_words, is_asked);
    return found == std::end(multiply_words) ? nullptr : found;
}

/// Returns the dtype in which the elements of an operand are stored: before conversions to a wider dtype, and before products by scales,
/// which have fewer elements.
Dtype stored_dtype(const Program &program, ValueId value) {
    const ValueId source = source_of_moves(program, value);
    const int producer = producers(program)[size_t(source)];
    const Type &type = program.type(source);
    if (producer < 0) return type.dtype;
    const Node &node = program.nodes[size_t(producer)];
    if (node.op == "convert_element_type") {
        const Dtype before = stored_dtype(program, node.operands[0]);
        return size_of(before) < size_of(type.dtype) ? before : type.dtype;
    }
    Dtype narrowest = type.dtype;
    for (size_t side = 0; node.op == "mul" && side < 2; side++) {
        const ValueId scale = source_of_moves(program, node.operands[1 - side]);
        if (program.type(scale).shape == type.shape) continue;
        const Dtype codes = stored_dtype(program, node.operands[side]);
        if (size_of(codes) < size_of(narrowest)) narrowest = codes;
    }
    return narrowest;
}

/// Returns "f8" for all formats of eight bits, "i8" for all bytes, and the dtype otherwise.
std::string format_name(Dtype dtype) {
    if (size_of(dtype) > 1) return std::string(to_string(dtype));
    return is_float(dtype) ? "f8" : "i8";
}

std::string stored_format(const Program &program, const Node &product) {
    const Dtype lhs = stored_dtype(program, product.operands[0]), rhs = stored_dtype(program, product.operands[1]);
    return format_name(size_of(lhs) > size_of(rhs) ? lhs : rhs);
}

/// Elements that are multiplied one by one are decoded if fewer bits are stored.
MultiplyBy one_by_one(const Program &program, const Node &product) {
    const Dtype sum = program.type(product.results[0]).dtype;
    const auto is_decoded = [&](ValueId operand) { return size_of(stored_dtype(program, operand)) < 4; };
    return is_float(sum) && std::ranges::all_of(product.operands, is_decoded) ? MultiplyBy::f32 : MultiplyBy::own;
}

MultiplyBy multiply_by(const Program &program, const Contraction &c) {
    if (c.in_tiles) return MultiplyBy::tiles;
    if (c.group == 4) return MultiplyBy::byte_quads;
    if (c.group == 2) return c.rhs.packed.is_bfloat() ? MultiplyBy::bf16_pairs : MultiplyBy::i16_pairs;
    return one_by_one(program, *c.node);
}

ProductForm form_of_matmul(const Program &kernel, const Halide::Target &target, const Budgets &budgets) {
    LoweredKernel lowered = begin_kernel(kernel, target);
    Values values(lowered);
    const Contraction c = describe_contraction({lowered, values, target, budgets});
    return {
        stored_format(lowered.program, *c.node), multiply_by(lowered.program, c), c.sum.is_float(), {c.batch, c.rows, c.columns, c.depth}};
}

MultiplyBy multiply_by(const Program &kernel, const Node &node, const ConvolutionForm &form) {
    if (form.in_tiles) return MultiplyBy::tiles;
    return form.group == 2 ? MultiplyBy::bf16_pairs : one_by_one(kernel, node);
}

ProductForm form_of_convolution(const Program &kernel, const Node &node, const Budgets &budgets) {
    const Type &result = kernel.type(node.results[0]), &weights = kernel.type(node.operands[1]);
    Extents terms = result.shape;
    const int64_t features = convolution(node.attributes, weights.shape).rhs_spec[0];
    for (int64_t axis = 0; axis < weights.rank(); axis++)
        if (axis != features) terms.push_back(weights.shape[size_t(axis)]);
    const MultiplyBy by = multiply_by(kernel, node, convolution_form(kernel, node, budgets));
    return {stored_format(kernel, node), by, is_float(result.dtype), terms};
}

} // namespace

std::optional<ProductForm> product_form(const Program &kernel, const Halide::Target &target, const Budgets &budgets) {
    const std::string &kind = kernel.attributes.at("kind").word;
    if (kind == "contract") return form_of_matmul(kernel, target, budgets);
    if (kind != "window") return {};
    const Program lowered = begin_kernel(kernel, target).program;
    const auto node = std::ranges::find(lowered.nodes, "conv_general_dilated", &Node::op);
    if (node == lowered.nodes.end()) return {};
    return form_of_convolution(lowered, *node, budgets);
}

std::string rate_name(const ProductForm &form) {
    const MultiplyWords *words = words_of(form);
    return words ? form.format + "_" + std::string(words->rate) : "";
}

std::string instructions_of(const ProductForm &form, const Halide::Target &target) {
    const MultiplyWords *words = words_of(form);
    if (words && !words->instructions.empty()) return std::string(target.arch == Halide::Target::X86 ? words->instructions : words->rate);
    const bool has_fma = target.arch != Halide::Target::X86 || target.has_feature(Halide::Target::FMA);
    return std::string(words ? "decoded to f32, " : "") + (has_fma ? "FMA" : "mul and add");
}

} // namespace scalide

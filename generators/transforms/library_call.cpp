#include "transforms/library_call.h"
#include <algorithm>

namespace scalide {

const LibraryProduct *find_product(const Program &program, const Node &node, const TargetFacts &facts) {
    if (node.op != "dot_general" || facts.products.empty()) return nullptr;
    const auto form = matmul_form(program, node);
    if (!form) return nullptr;
    const Dtype lhs = program.type(form->lhs.value).dtype, rhs = program.type(form->rhs.value).dtype;
    const auto row = std::ranges::find_if(facts.products, [&](const LibraryProduct &p) { return p.lhs == lhs && p.rhs == rhs; });
    return row == facts.products.end() ? nullptr : &*row;
}

std::string why_no_library(const Program &kernel, const Node &dot, const TargetFacts &facts) {
    const auto form = matmul_form(kernel, dot);
    if (!form) return "the last axis of an operand is that of the batch";
    const auto name = [&](const MatmulOperand &operand) { return std::string(to_string(kernel.type(operand.value).dtype)); };
    const std::string product = name(form->lhs) + " x " + name(form->rhs);
    return find_product(kernel, dot, facts) ? "fuse left " + product + " to the kernel" : "dispatch.yaml has no row for " + product;
}

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

} // namespace scalide

#include "transforms/why_no_library.h"
#include "transforms/matmul_form.h"
#include <algorithm>

namespace scalide {

std::string why_no_library(const Program &kernel, const Node &dot, const TargetFacts &facts) {
    const auto form = matmul_form(kernel, dot);
    if (!form) return "the last axis of an operand is that of the batch";
    const Dtype lhs = kernel.type(form->lhs.value).dtype, rhs = kernel.type(form->rhs.value).dtype;
    const bool has_row = std::ranges::any_of(facts.products, [&](const LibraryProduct &p) { return p.lhs == lhs && p.rhs == rhs; });
    const std::string product = std::string(to_string(lhs)) + " x " + std::string(to_string(rhs));
    return has_row ? "fuse left " + product + " to the kernel" : "dispatch.yaml has no row for " + product;
}

} // namespace scalide

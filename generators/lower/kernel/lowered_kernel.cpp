#include "lower/kernel/lowered_kernel.h"

namespace scalide {

Halide::Expr to_expr(const Extent &extent, const LoweredKernel &kernel) {
    Halide::Expr sum = 0;
    for (const auto &[monomial, coefficient] : extent.terms()) {
        Halide::Expr term = int(coefficient);
        for (const std::string &symbol : monomial) {
            term = term * kernel.symbols.at(symbol);
        }
        sum = sum + term;
    }
    return Halide::Internal::simplify(sum);
}

} // namespace scalide

#include "rulebook/intrinsics.h"
#include <algorithm>

namespace scalide {

namespace {

// clang-format off
constexpr Intrinsic intrinsic_table[] = {
    {"select", "select(c, a, b)", "a where c, else b", 3, false},
    {"ratio", "ratio(a, b)", "a / b, 0 where b is 0", 2, false},
    {"hypot", "hypot(a, b)", "sqrt(a * a + b * b), without overflow on the way", 2, false},
    {"largest", "largest(a, b)", "the larger scale, a finite one beside an infinite one; as a whole `scale`: elements of the result are elements of operands", 2, false},
    {"pow2", "pow2(a)", "a rounded to a power of two as the program's `rounding` says: down, up, nearest, none, stochastic", 1, false},
    {"unit", "unit(a)", "pow2(a) in the strategy unit, 1 in the others", 1, false},
    {"index", "index(xs)", "the number of the array in the variadic operand xs, where an expression is made once for each", 1, false},
    {"first", "first(xs, n)", "the first n arrays of a variadic operand", 2, false},
    {"self", "self(x, ...)", "this operator with this node's attributes", -1, true},
};
// clang-format on

} // namespace

std::span<const Intrinsic> intrinsics() { return intrinsic_table; }

const Intrinsic *find_intrinsic(std::string_view name) {
    const auto *row = std::ranges::find(intrinsic_table, name, &Intrinsic::name);
    return row == std::end(intrinsic_table) ? nullptr : row;
}

} // namespace scalide

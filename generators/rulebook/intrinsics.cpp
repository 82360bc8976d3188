#include "rulebook/intrinsics.h"
#include <algorithm>

namespace scalide {

namespace {

// clang-format off
constexpr Intrinsic intrinsic_table[] = {
    {"select", "select(c, a, b)", "a where c is true, else b", 3, false},
    {"ratio", "ratio(a, b)", "a / b, and 0 where b is 0", 2, false},
    {"hypot", "hypot(a, b)", "sqrt(a * a + b * b), without overflow in between", 2, false},
    {"largest", "largest(a, b)", "the larger scale, or the finite one if the other is infinite; as the whole `scale` it states that results are elements of operands", 2, false},
    {"pow2", "pow2(a)", "a, rounded to a power of two by the setting `rounding` of the program or policy", 1, false},
    {"unit", "unit(a)", "pow2(a) in the strategy unit, 1 in the others", 1, false},
    {"index", "index(xs)", "the number of the current array of the variadic operand xs, in an expression that is evaluated once for each array", 1, false},
    {"first", "first(xs, n)", "the first n arrays of a variadic operand", 2, false},
    {"self", "self(x, ...)", "this operator with the attributes of this node", -1, true},
};
// clang-format on

} // namespace

std::span<const Intrinsic> intrinsics() { return intrinsic_table; }

const Intrinsic *find_intrinsic(std::string_view name) {
    const auto *row = std::ranges::find(intrinsic_table, name, &Intrinsic::name);
    return row == std::end(intrinsic_table) ? nullptr : row;
}

} // namespace scalide

// What the rows of expr/base_operators.h claim of signs, orders and folds, held against their f64 values on a grid.
#include "expr/base_operators.h"
#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <set>
#include <vector>

using namespace scalide;

namespace {

using Numbers = std::vector<double>;

constexpr double inf = std::numeric_limits<double>::infinity();

const Numbers floats{-inf, -1e300, -3, -1.5, -1, -0.3, -1e-310, -0.0, 0.0, 1e-310, 0.1, 0.3, 0.5, 1, 1.5, 3, 224, 1e300, inf, std::nan("")};
const Numbers integers{-7, -2, -1, 0, 1, 2, 3, 12};

/// Bits of integers: f64 has no other meaning for them.
bool is_of_bits(const BaseOperator &op) {
    static const std::set<std::string_view> logical{"and", "or", "xor"};
    return op.takes_width || logical.contains(op.name);
}

const Numbers &grid_of(const BaseOperator &op) { return is_of_bits(op) ? integers : floats; }

/// All operands from the grid, one after the other; `which` of select_n is a truth value.
std::vector<Numbers> operands_of(const BaseOperator &op, const Numbers &grid) {
    const bool chooses_case = op.arity < 0;
    std::vector<Numbers> all{{}};
    for (int i = 0; i < (chooses_case ? 3 : op.arity); i++) {
        std::vector<Numbers> longer;
        for (const Numbers &begun : all)
            for (const double value : chooses_case &&i == 0 ? Numbers{0, 1} : grid) {
                longer.push_back(begun);
                longer.back().push_back(value);
            }
        all = longer;
    }
    return all;
}

double value(const BaseOperator &op, Numbers operands) {
    if (!op.parameter.empty()) operands.push_back(3);
    if (op.takes_width) operands.push_back(32);
    return op.evaluate(operands);
}

bool same_bits(double a, double b) { return (std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b)); }

bool is_no_negative_zero(double x) { return x != 0 || !std::signbit(x); }
bool is_never_negative(double x) { return std::isnan(x) || !std::signbit(x); }

void expect_signs(const BaseOperator &op, const Numbers &operands, double result) {
    const Signs &signs = op.signs;
    EXPECT_TRUE(!follows(signs.never_negative_zero, operands, is_no_negative_zero) || is_no_negative_zero(result))
        << op.name << testing::PrintToString(operands) << " is -0";
    EXPECT_TRUE(!follows(signs.never_negative, operands, is_never_negative) || is_never_negative(result))
        << op.name << testing::PrintToString(operands) << " is " << result;
}

/// What elements that are folded one after the other give.
double folded(const BaseOperator &step, const Numbers &elements) {
    double result = step.fold_start.value();
    for (const double element : elements) result = value(step, {result, element});
    return result;
}

template<typename Holds>
bool always(const BaseOperator &op, const Holds &holds) {
    const Numbers &grid = grid_of(op);
    return std::ranges::all_of(grid, [&](double a) {
        return std::ranges::all_of(grid, [&](double b) { return std::ranges::all_of(grid, [&](double c) { return holds(a, b, c); }); });
    });
}

bool commutes(const BaseOperator &op) {
    return std::ranges::all_of(operands_of(op, grid_of(op)), [&](const Numbers &v) {
        return same_bits(value(op, v), value(op, {v[1], v[0]}));
    });
}

bool is_idempotent_in_any_order(const BaseOperator &op) {
    const auto f = [&](double a, double b) { return value(op, {a, b}); };
    return always(op, [&](double a, double b, double c) { return same_bits(f(a, a), a) && same_bits(f(f(a, b), c), f(a, f(b, c))); });
}

std::vector<const BaseOperator *> operators_with_values() {
    std::vector<const BaseOperator *> found;
    for (const BaseOperator &op : base_operators())
        if (op.evaluate != nullptr) found.push_back(&op);
    return found;
}

} // namespace

TEST(expr, signs_follow_as_claimed) {
    for (const BaseOperator *op : operators_with_values()) {
        if (op->signs.never_negative == From::nothing && op->signs.never_negative_zero == From::nothing) continue;
        for (const Numbers &operands : operands_of(*op, grid_of(*op))) expect_signs(*op, operands, value(*op, operands));
    }
}

// Of no, one and two elements. A scan is such a fold of one element at least.
TEST(expr, signs_of_folds_follow_as_claimed) {
    for (const BaseOperator &op : base_operators()) {
        if (op.shape != Shape::reduce && op.shape != Shape::scan) continue;
        if (op.fold.empty() || op.gives_place || is_of_bits(base_operator(op.fold))) continue;
        const BaseOperator &step = base_operator(op.fold);
        if (op.shape == Shape::reduce) expect_signs(op, {}, folded(step, {}));
        for (const double a : floats) {
            expect_signs(op, {a}, folded(step, {a}));
            for (const double b : floats) expect_signs(op, {a, b}, folded(step, {a, b}));
        }
    }
}

TEST(expr, signs_of_sums_of_products_follow_as_claimed) {
    for (const BaseOperator &op : base_operators())
        if (op.sums_products)
            for (const double a : floats)
                for (const double b : floats) expect_signs(op, {a, b}, 0.0 + a * b);
}

// Movement has the elements of its operands, and where an attribute fills in others no sign is known.
TEST(expr, signs_of_movement_are_those_of_operands) {
    for (const BaseOperator &op : base_operators()) {
        if (op.shape != Shape::movement) continue;
        for (const From from : {op.signs.never_negative, op.signs.never_negative_zero})
            EXPECT_TRUE(from == From::nothing || (from == From::all_operands && op.name != "gather")) << op.name;
        EXPECT_TRUE(op.fold.empty() && op.evaluate == nullptr) << op.name;
    }
}

// In both directions: what commutes must say so.
TEST(expr, operators_of_two_commute_as_claimed) {
    for (const BaseOperator *op : operators_with_values()) {
        const bool can = op->arity == 2 && !op->takes_width;
        EXPECT_EQ(op->is_commutative, can && commutes(*op)) << op->name;
        if (!op->is_commutative || op->evaluate_integer == nullptr) continue;
        for (const Numbers &v : operands_of(*op, integers))
            EXPECT_EQ(op->evaluate_integer(v), op->evaluate_integer(Numbers{v[1], v[0]})) << op->name;
    }
}

TEST(expr, operators_are_idempotent_as_claimed) {
    for (const BaseOperator *op : operators_with_values())
        EXPECT_EQ(op->is_idempotent, op->is_commutative && is_idempotent_in_any_order(*op)) << op->name;
}

TEST(expr, folds_begin_with_what_changes_no_number) {
    for (const BaseOperator &op : base_operators()) {
        if (!op.fold.empty()) EXPECT_TRUE(base_operator(op.fold).fold_start) << op.name;
        if (!op.fold_start) continue;
        for (const double element : grid_of(op)) {
            const double result = value(op, {*op.fold_start, element});
            EXPECT_TRUE(result == element || (std::isnan(result) && std::isnan(element))) << op.name << " " << element << " is " << result;
        }
    }
}

TEST(expr, choices_stay_in_f32) {
    Numbers singles;
    for (const double value : floats) singles.push_back(static_cast<float>(value));
    for (const BaseOperator *op : operators_with_values()) {
        if (!op->chooses) continue;
        for (const Numbers &operands : operands_of(*op, singles)) {
            const double result = value(*op, operands);
            EXPECT_TRUE(same_bits(result, static_cast<float>(result))) << op->name << testing::PrintToString(operands);
        }
    }
}

TEST(expr, folds_in_any_order_are_choices_of_an_element) {
    std::set<std::string_view> found;
    for (const BaseOperator &op : base_operators())
        if (op.shape == Shape::reduce && folds_in_any_order(op)) found.insert(op.name);
    EXPECT_EQ(found, (std::set<std::string_view>{"reduce_max", "reduce_min", "reduce_and", "reduce_or"}));
}

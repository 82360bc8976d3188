#pragma once
#include <algorithm>
#include <optional>
#include <span>
#include <string_view>

namespace scalide {

/// How a base operator moves over indices. It decides how the interpreter walks and what `fuse` may do with it.
/// shape_words() has a line on each.
enum class Shape { elementwise, movement, source, reduce, scan, scatter, sort, contract, window };

struct ShapeWords {
    Shape shape;
    std::string_view name, text;
};

/// What the shapes are called and mean, in the order of the documentation (rules/README.md).
std::span<const ShapeWords> shape_words();
std::string_view to_string(Shape shape);

/// The f64 value of one element. Bools are 0 or 1. An operator with a number among its attributes takes it as a last argument
/// (BaseOperator::parameter).
using Evaluate = double (*)(std::span<const double>);

/// From which operands a property of the result follows.
enum class From {
    nothing,      ///< it need not have it
    no_operand,   ///< it has it whatever the operands are
    any_operand,  ///< from one operand that has it
    all_operands, ///< when all operands have it
};

/// Whether it follows from these operands; has(operand) says which have it.
template<typename Operands, typename Has>
bool follows(From from, const Operands &operands, const Has &has) {
    switch (from) {
    case From::nothing: return false;
    case From::no_operand: return true;
    case From::any_operand: return std::ranges::any_of(operands, has);
    case From::all_operands: return std::ranges::all_of(operands, has);
    }
    return false;
}

/// What is known of the signs of a result. Of floats: integers may wrap around.
struct Signs {
    From never_negative_zero = From::nothing;
    From never_negative = From::nothing; ///< neither below 0 nor -0; NaN it may be
};

/// All that is known of an operator whose meaning is C++ (everything else is a rule's `value`): the one place where passes, interpreter and
/// lowering look. What is left out is safe to leave out; what is not, a row without it does not compile. Each claim is held against
/// `evaluate` by tests/unit/expr/operator_facts.cpp.
struct BaseOperator {
    std::string_view name; ///< LAX name
    Shape shape = Shape::elementwise;
    int arity = 0; ///< -1: variadic
    /// Arithmetic of one element in units of an addition (a division 4, an exponential 12): instructions of its lowering, rounded, for one
    /// f32 of a vector; those that compute in f64 count double. For decisions, not for reports of time.
    int cost = 0;
    Signs signs = {};

    // elementwise
    Evaluate evaluate = nullptr; ///< JAX's rules for NaN, infinities and signed zero, all in f64. nullptr for the conversions
                                 ///< (convert_element_type, bitcast_convert_type, reduce_precision): they are about formats (ir/dtype.h).
    Evaluate evaluate_integer = nullptr; ///< where integers follow another rule (div, rem, not) or f64 is not exact (mul, integer_pow);
                                         ///< nullptr: `evaluate`. Exact in the low 32 bits; wrapping around is left to the caller.
    std::string_view parameter = {};     ///< the attribute that `evaluate` takes as a last argument: integer_pow's exponent `y`
    bool takes_width = false;            ///< the functions take the bits of the operands' dtype as a last argument: shifts, counts of bits
    bool is_commutative = false;         ///< f(a, b) has the bits of f(b, a), NaN payloads aside
    bool is_idempotent = false;          ///< f(a, a) = a, and a fold by it has the same bits in any order (max)
    bool chooses = false; ///< the result is an operand, or a number or truth value that f32 operands give exactly in f32: no f64 is needed
    bool makes_scale =
        false; ///< the result is 0, NaN or in [2^-126, 2^127], and f32 operands give it exactly in f32: nothing clamps it again
    std::optional<double> fold_start = {}; ///< what a fold by this operator begins with: f(start, a) = a, but for -0 + 0

    // movement
    bool joins = false;   ///< elements of other arrays than the first come in: concatenate, pad
    bool repeats = false; ///< an element may stand at several places of the result

    // all others
    bool reads_indices = false; ///< operands are indices of elements of others: gather, scatter
    std::string_view fold = {}; ///< the operator of two numbers that it folds with; empty: none (scatter replaces)
    bool gives_place = false;   ///< the result is the place of the element that the fold ends with: argmax
    bool sums_products = false; ///< each element is a sum of products of elements of both operands
};

/// The row of `name`, or nullptr when it is no base operator.
const BaseOperator *find_base_operator(std::string_view name);

/// The row of `name`. Throws InternalError when it is no base operator.
const BaseOperator &base_operator(std::string_view name);

/// True when it folds, and any order of the elements gives the same bits: the largest, the smallest.
bool folds_in_any_order(const BaseOperator &op);

/// BaseOperator::cost, 1 for what is no base operator.
int operator_cost(std::string_view op);

/// All rows, in the order of the documentation.
std::span<const BaseOperator> base_operators();

} // namespace scalide

#pragma once
#include <algorithm>
#include <optional>
#include <span>
#include <string_view>

namespace scalide {

/// The iteration pattern of a base operator. It decides how the interpreter iterates and what `fuse` may do with the operator.
/// shape_words() has one line about each.
enum class Shape { elementwise, movement, source, reduce, scan, scatter, sort, contract, window, collective };

struct ShapeWords {
    Shape shape;
    std::string_view name, text;
};

/// What the shapes are called and mean, in the order of the documentation (rules/README.md).
std::span<const ShapeWords> shape_words();
std::string_view to_string(Shape shape);

/// Computes one element in f64. Bools are 0 or 1. If the operator has a numeric attribute (BaseOperator::parameter), it is the last
/// argument.
using Evaluate = double (*)(std::span<const double>);

/// When the result of an operator has a property.
enum class From {
    nothing,      ///< not known
    no_operand,   ///< always
    any_operand,  ///< if one operand has it
    all_operands, ///< if all operands have it
};

/// Returns whether the result has a property. has(operand) says which operands have it.
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

/// What is known about the signs of a float result. Integers may wrap around.
struct Signs {
    From never_negative_zero = From::nothing;
    From never_negative = From::nothing; ///< neither negative nor -0; it may be NaN
};

/// One row of the table of base operators. A base operator is implemented in C++; every other operator has a rule with a `value`. Passes,
/// interpreter and lowering read its cost, signs and order from this row. A default is always safe; is_complete() checks at compile time
/// that the other members are set. tests/unit/expr/operator_facts.cpp compares each claim with `evaluate`.
struct BaseOperator {
    std::string_view name; ///< LAX name
    Shape shape = Shape::elementwise;
    int arity = 0; ///< -1: variadic
    /// Cost of one element, in units of an addition (division: 4, exponential: 12). It is the rounded number of instructions for one f32 of
    /// a vector; f64 instructions count twice. Passes use it for decisions. It is no estimate of time.
    int cost = 0;
    Signs signs = {};

    // elementwise
    Evaluate evaluate = nullptr;         ///< in f64, with the rules of JAX for NaN, infinities and signed zero. nullptr for conversions
                                         ///< (convert_element_type, bitcast_convert_type, reduce_precision), see ir/dtype.h
    Evaluate evaluate_integer = nullptr; ///< for integers, if they follow another rule (div, rem, not) or f64 is not exact (mul,
                                         ///< integer_pow). nullptr: `evaluate`. Exact in the low 32 bits; the caller wraps around
    /// The function with the attribute `accuracy`, as kernels compute it in f32. The last argument is its number of significant bits.
    /// nullptr: the operator has no such attribute.
    Evaluate evaluate_reduced = nullptr;
    std::string_view parameter = {}; ///< attribute that is the last argument of `evaluate`, such as the exponent `y` of integer_pow
    bool takes_width = false;        ///< the last argument is the number of bits of the dtype (shifts, bit counts)
    bool is_commutative = false;     ///< f(a, b) and f(b, a) have the same bits, except NaN payloads
    bool is_idempotent = false;      ///< f(a, a) = a, and a reduction has the same bits in any order (max)
    bool chooses = false;            ///< the result is an operand, or f32 is enough to compute it exactly from f32 operands
    bool makes_scale = false;        ///< the result is 0, NaN or in [2^-126, 2^127], and exact in f32 for f32 operands: no clamp is needed
    std::optional<double> fold_start = {}; ///< neutral element of a reduction: f(start, a) = a, except -0 + 0
    bool keeps_relative_errors = false;    ///< a relative error of an operand becomes one of the result that is not larger

    // movement
    bool joins = false;   ///< the result has elements of several arrays (concatenate, pad)
    bool repeats = false; ///< an element may occur several times in the result

    // all others
    bool reads_indices = false; ///< operands are indices into other operands (gather, scatter)
    std::string_view fold = {}; ///< the binary operator of the reduction. Empty: none (scatter replaces elements)
    bool gives_place = false;   ///< the result is the index of the selected element (argmax)
    bool sums_products = false; ///< each element is a sum of products of elements of both operands (matmul, convolution)
};

/// Returns the row of `name`, or nullptr if it is no base operator.
const BaseOperator *find_base_operator(std::string_view name);

/// Returns the row of `name`. Throws InternalError if it is no base operator.
const BaseOperator &base_operator(std::string_view name);

/// Returns true for an operator whose result elements are elements of its operands: movement, and a scatter that replaces elements. It
/// works on arrays in any format.
bool moves_elements(const BaseOperator &op);

/// Returns true for an operator that exchanges arrays with other ranks. It runs between kernels.
bool is_collective(std::string_view op);

/// Returns true for a reduction that gives the same bits in any order (maximum, minimum).
bool folds_in_any_order(const BaseOperator &op);

/// Returns BaseOperator::cost, or 1 if it is no base operator.
int operator_cost(std::string_view op);

/// Returns all rows, in the order of the documentation.
std::span<const BaseOperator> base_operators();

} // namespace scalide

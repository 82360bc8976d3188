#pragma once
#include "ir/type.h"
#include "rulebook/rule.h"
#include <span>

namespace scalide {

/// A value that is known when a program is built: an integer (or symbolic extent), a real number, a word (dtype, true, false) or a list. It
/// may also be an operand, whose type shape functions read.
struct StaticValue {
    Attribute value;
    int operand = -1;              ///< index of the operand in the rule; -1: use `value`
    std::vector<Type> arrays = {}; ///< types of the operand; a variadic operand has one for each array
};

/// The names that a static expression can use.
struct StaticScope {
    const Rule &rule;
    const std::vector<Type> &operands; ///< in node order
    const Attributes &attributes;      ///< complete
    const std::vector<Type> &results;  ///< the results that are inferred already
};

/// Returns the types of one operand of the rule: several for a variadic operand.
std::vector<Type> operand_types(const Rule &rule, int operand, const std::vector<Type> &flat);

/// Returns true for a constant name: pi, inf, true, false, a dtype, or a choice of a word attribute of the rule.
bool is_constant_name(const std::string &name, const Rule &rule);

/// Applies an operator to static values. + concatenates lists; == and != compare any values; <, <=, > and >= compare extents for all values
/// of their symbols; other operators need numbers. Throws UserError without location and subject if there is no such value.
Attribute evaluate_operator(const std::string &op, const std::vector<Attribute> &operands);

/// Evaluates a static expression: attributes, shape functions, literals and operators. Errors as evaluate_operator().
Attribute evaluate_static(const Expression &expression, const StaticScope &scope);

/// A function of types and attributes in rule text, see shape_functions().
struct ShapeFunction {
    std::string_view name, signature, text; ///< `extents`, `extents(x, axes)`, one line for the documentation
    int least, most;                        ///< number of arguments; most = -1: no limit
    Attribute (*evaluate)(std::span<const StaticValue>);
};
std::span<const ShapeFunction> shape_functions();
const ShapeFunction *find_shape_function(std::string_view name);

/// Conversions between truth values and attributes.
Attribute make_flag(bool value);
bool is_true(const Attribute &attribute);
/// Returns an attribute as an extent. Throws UserError if it is no integer or symbol.
Extent to_extent(const Attribute &attribute);

/// Returns whether a <= b for all values of the symbols. Returns nothing if it depends on the values.
std::optional<bool> less_or_equal(const Extent &a, const Extent &b);

} // namespace scalide

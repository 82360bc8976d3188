#pragma once
#include "ir/type.h"
#include "rulebook/rule.h"
#include <span>

namespace scalide {

/// A value known when a program is built: integers (also symbolic extents), real numbers, words (dtypes, true, false) and lists, or an
/// operand, which shape functions ask for its type.
struct StaticValue {
    Attribute value;
    int operand = -1;              ///< of the rule; -1: `value` counts
    std::vector<Type> arrays = {}; ///< types of the operand, one for each array of a variadic one
};

/// What static expressions can see.
struct StaticScope {
    const Rule &rule;
    const std::vector<Type> &operands; ///< flat, in node order
    const Attributes &attributes;      ///< complete
    const std::vector<Type> &results;  ///< those inferred so far
};

/// The types of one operand of the rule: several when it is variadic.
std::vector<Type> operand_types(const Rule &rule, int operand, const std::vector<Type> &flat);

/// Names that stand for themselves in every expression: pi, inf, true, false, dtypes and the choices of the rule's word attributes.
bool is_constant_name(const std::string &name, const Rule &rule);

/// An operator on static values: + joins lists, == and != compare anything, < and its kin compare extents for all values of their symbols,
/// the rest work on numbers. Throws UserError without place or subject when there is no such value.
Attribute evaluate_operator(const std::string &op, const std::vector<Attribute> &operands);

/// Evaluates a static expression: attributes, shape functions, literals and operators on them. Errors as above.
Attribute evaluate_static(const Expression &expression, const StaticScope &scope);

/// A function of types and attributes: see shape_functions().
struct ShapeFunction {
    std::string_view name, signature, text; ///< `extents`, `extents(x, axes)`, one line for rules/README.md
    int least, most;                        ///< number of arguments; most -1: any
    Attribute (*evaluate)(std::span<const StaticValue>);
};
std::span<const ShapeFunction> shape_functions();
const ShapeFunction *find_shape_function(std::string_view name);

/// Words and truth values.
Attribute make_flag(bool value);
bool is_true(const Attribute &attribute);
/// An attribute as an extent: integers and symbols. UserError for others.
Extent to_extent(const Attribute &attribute);

/// a <= b for all values of the symbols; nothing when that depends on them.
std::optional<bool> less_or_equal(const Extent &a, const Extent &b);

} // namespace scalide

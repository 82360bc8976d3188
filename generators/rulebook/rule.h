#pragma once
#include "expr/expression.h"
#include "ir/attribute.h"
#include "ir/dtype.h"
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace scalide {

/// The values that an operand accepts. Only float values can be scaled (`floating`, or a float in `number`, `any` or `every`). i64 is
/// accepted by `every` only, and by `index`, whose operands become i32 before the operator (Builder::narrowed).
enum class OperandClass { floating, integer, boolean, number, any, every, index, bits, program };

/// An operand: `x: T float...`. `letter` (T) ties dtypes and may be empty; `...` means variadic.
struct OperandSpec {
    std::string name;
    OperandClass operand_class = OperandClass::floating;
    std::string letter;
    bool variadic = false;
};

/// An attribute: `axis: {type: axis, default: 0}`. Types: axis, axes, axis_pairs, permutation, shape, dtype, integer, number, integers,
/// flag, word, padding, program. Rule text and programs may count axes from the end (-1: last); stored axes are not negative.
struct AttributeSpec {
    std::string name, type;
    std::vector<std::string> choices;       ///< word, padding
    std::optional<Attribute> default_value; ///< `promoted` (for a dtype): the promoted dtype of the float operands
    bool optional = false;                  ///< it may be absent; then it is not printed
    std::string hint;                       ///< what to do if a value does not fit; may be empty
    Location location;

    bool is_required() const { return !default_value && !optional; }
};

/// A result. It has the type of operand `like`, unless `dtype` or `shape` (static expressions, see static_value.h) are given.
struct ResultSpec {
    std::string name = "out";
    std::string like;
    Expression dtype, shape; ///< null: from `like`
    bool plain = false;      ///< never scaled
    bool each = false;       ///< one result for each array of the variadic operand `like`; the rule then has no other result
};

/// A constraint: `where: {c1: {require: expression, say: words, hint: words}}`.
struct Constraint {
    std::string id, say, hint; ///< hint: what to do; may be empty
    Expression require;
};

/// The kind of a gradient (`grad:`).
/// - none: there is no gradient. Default if all results are plain.
/// - derived: for a composite, from the operators of its value (its default); for a base operator, a transposition in C++.
/// - expressions: one expression for each operand.
/// - program: the sub-program in the attribute `program` computes it from the cotangent.
/// A base operator with other results must have `grad:`.
enum class GradientKind { none, derived, expressions, program };

/// One case of `check`: shapes (letters or numbers) by operand, and attributes.
struct CheckCase {
    std::map<std::string, std::vector<std::vector<std::string>>> shapes; ///< a variadic operand has several shapes
    Attributes attributes;
};

/// A test vector computed by hand: numbers by operand or result, and attributes. A YAML number is a scalar, a list is a vector. The arrays
/// of a variadic operand `cases` are `cases.0`, `cases.1` ...
struct CheckVector {
    std::map<std::string, std::vector<double>> values;
    std::set<std::string> scalars; ///< names of the scalars
    Attributes attributes;
};

struct Check {
    std::map<std::string, std::pair<double, double>> domain; ///< operand -> closed interval of test values; default [-2, 2]
    std::map<std::string, std::vector<double>> kinks;        ///< operand -> points that the gradient test avoids
    std::map<std::string, double> tolerance;                 ///< dtype -> largest allowed error; the laws have defaults
    std::string gradient = "exact";                          ///< exact, straight_through, none
    /// exact: data * scale equals the value for any split of the operands into data and scale. rounded: equal up to rounding (log).
    /// storage: the operator changes how an operand is stored, so no law is tested.
    std::string scaling = "exact";
    std::vector<CheckCase> cases;
    std::vector<CheckVector> vectors;
};

/// How scales of results are chosen. l2: root mean square. max: largest scale of the operands. unit: factors of unit scaling.
inline constexpr std::string_view strategies[] = {"l2", "max", "unit"};

/// The rule of one operator, from its YAML file. It does not change after loading.
struct Rule {
    std::string op, family, doc;
    Location location;
    std::vector<OperandSpec> operands;
    std::vector<AttributeSpec> attributes;
    std::vector<ResultSpec> results;
    std::vector<Constraint> constraints;
    std::vector<std::pair<std::string, Expression>> lets; ///< in the order of the file; a let may use earlier lets
    bool is_base = false;                                 ///< `value: base`
    std::vector<Expression> value;                        ///< one for each result; empty for a base operator
    /// strategy -> one expression for each result (null: plain). "" means every strategy. Empty: no scale rule
    std::map<std::string, std::vector<Expression>> scale;
    std::vector<Expression> data;     ///< one for each result. null or empty: the default, `ratio(value, scale)`
    std::vector<Expression> on_plain; ///< for plain results of scaled operands; null or empty: computed from full values
    GradientKind gradient_kind = GradientKind::none;
    std::map<std::string, Expression> gradient; ///< operand -> expression; nullptr: the gradient is an error
    Check check;
    std::string compat;

    bool is_plain() const;      ///< all results are plain
    bool takes_program() const; ///< an attribute is the name of a sub-program
    /// Returns the spec, and the name, of result number `index`.
    const ResultSpec &result(size_t index) const { return results[index < results.size() ? index : results.size() - 1]; }
    std::string result_name(size_t index) const;
    bool has_scale() const { return !scale.empty(); }
    /// Returns false if there is no scale for this strategy. The operators of such a composite are then scaled one by one.
    bool has_scale(const std::string &strategy) const { return find_scale(strategy) != nullptr; }
    /// Returns the scale expressions for a strategy, else for "l2", else for every strategy. Throws InternalError if there are none.
    const std::vector<Expression> &scale_of(const std::string &strategy) const;
    /// Returns true if the operator only changes how its first operand is stored: the value is the operand, the scale is new. It makes a
    /// plain operand scaled (set_scaling, dynamic_rescale).
    bool chooses_scale() const;
    /// Returns true if the scale is the scale of the only operand, and the operator acts on its data: `scale: x.scale`, `data:
    /// self(x.data)`.
    bool carries_scale() const;
    /// Returns the index of an operand or result, or -1.
    int operand_index(const std::string &name) const;
    int result_index(const std::string &name) const;
    /// Returns true if data or on_plain needs full values (data * scale): it is left out, or it names a whole operand.
    bool forms_full_values() const;

private:
    const std::vector<Expression> *find_scale(const std::string &strategy) const;
    bool names_operand(const Expression &expression) const;
};

} // namespace scalide

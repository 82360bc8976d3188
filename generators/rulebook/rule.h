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

/// What kinds of values an operand takes. Only `floating` (and `number`, `any` when they hold a float) can be scaled.
enum class OperandClass { floating, integer, boolean, number, any, index, bits, program };

/// `x: T float...` : class, the letter that ties dtypes (may be empty), variadic or not.
struct OperandSpec {
    std::string name;
    OperandClass operand_class = OperandClass::floating;
    std::string letter;
    bool variadic = false;
};

/// `axis: {type: axis, default: 0}`. Types: axis, axes, axis_pairs, permutation, shape, dtype, integer, number, integers, flag, word,
/// program. Axes are stored non-negative; rule text and programs may count from the end (-1 = last).
struct AttributeSpec {
    std::string name, type;
    std::vector<std::string> choices;       ///< word
    std::optional<Attribute> default_value; ///< `promoted` (dtype): the promoted dtype of the float operands
    bool optional = false;                  ///< left out it is not there, and a printed program does not name it
    Location location;

    bool is_required() const { return !default_value && !optional; }
};

/// One result. Its type is that of operand `like`, unless `dtype` or `shape` say otherwise (static expressions, see static_value.h).
struct ResultSpec {
    std::string name = "out";
    std::string like;
    Expression dtype, shape; ///< null: that of `like`
    bool plain = false;      ///< never scaled
    bool each = false;       ///< one result for each array of the variadic operand `like`; then it is the only spec
};

/// `where: {c1: {require: expression, say: words}}`
struct Constraint {
    std::string id, say;
    Expression require;
};

/// `grad:` `none`, `derived`, `program` or expressions by operand. Left out it is `none` when all results are plain and `derived` in a
/// composite, that is, from the parts of its value; a base operator with other results must say it. `derived` in a base operator is a
/// transposition in C++. `program`: what the sub-program that the attribute `program` names makes of the cotangent.
enum class GradientKind { none, derived, expressions, program };

/// One shape-and-attribute case of `check`: operand name -> extents in letters (or numbers), attribute name -> value.
struct CheckCase {
    std::map<std::string, std::vector<std::vector<std::string>>> shapes; ///< variadic operands have several
    Attributes attributes;
};

/// A vector worked by hand: operand or result name -> numbers (rank 1, or rank 0 when the YAML value is a number), attributes. The
/// arrays of a variadic operand `cases` are called `cases.0`, `cases.1` ...
struct CheckVector {
    std::map<std::string, std::vector<double>> values;
    std::set<std::string> scalars; ///< names of the values of rank 0
    Attributes attributes;
};

struct Check {
    std::map<std::string, std::pair<double, double>> domain; ///< operand -> closed interval; default [-2, 2]
    std::map<std::string, std::vector<double>> kinks;        ///< operand -> points where the gradient test keeps away
    std::map<std::string, double> tolerance;                 ///< dtype name -> bound of the error metric; default by dtype in laws
    std::string gradient = "exact";                          ///< exact, straight_through, none
    /// exact: data * scale equals the value, whatever power of two an operand keeps in its scale; rounded: only up to rounding, since
    /// the value depends on the split (log); storage: the results say how an operand is stored, so there is no law.
    std::string scaling = "exact";
    std::vector<CheckCase> cases;
    std::vector<CheckVector> vectors;
};

/// How scales are chosen: l2 follows the root mean square, max the largest scale, unit the factors of unit scaling.
inline constexpr std::string_view strategies[] = {"l2", "max", "unit"};

/// One operator, as its YAML file says it; frozen once loaded.
struct Rule {
    std::string op, family, doc;
    Location location;
    std::vector<OperandSpec> operands;
    std::vector<AttributeSpec> attributes;
    std::vector<ResultSpec> results;
    std::vector<Constraint> constraints;
    std::vector<std::pair<std::string, Expression>> lets; ///< in file order; a let may use earlier ones
    bool is_base = false;                                 ///< `value: base`
    std::vector<Expression> value;                        ///< by result; empty when base
    /// strategy -> by result (null where plain); key "" = every strategy; empty map: no scale rule
    std::map<std::string, std::vector<Expression>> scale;
    std::vector<Expression> data;     ///< by result (null: default, `ratio(value, scale)`); empty: default everywhere
    std::vector<Expression> on_plain; ///< by result, for plain results of scaled operands (null: default, full values); empty: default
    GradientKind gradient_kind = GradientKind::none;
    std::map<std::string, Expression> gradient; ///< operand -> expression; nullptr: asking for it is an error
    Check check;
    std::string compat;

    bool is_plain() const;      ///< all results are plain
    bool takes_program() const; ///< an attribute names a sub-program
    /// The spec of flat result number `index`, and what that result is called.
    const ResultSpec &result(size_t index) const { return results[std::min(index, results.size() - 1)]; }
    std::string result_name(size_t index) const;
    bool has_scale() const { return !scale.empty(); }
    /// False for a composite whose parts are scaled each by itself: it has no scale, or none that holds for this strategy.
    bool has_scale(const std::string &strategy) const { return find_scale(strategy) != nullptr; }
    /// The scale expressions of a strategy: its own, else "l2", else those for every strategy. InternalError without any.
    const std::vector<Expression> &scale_of(const std::string &strategy) const;
    /// The value is the first operand, the scale is not that operand's: the operator says how its operand is stored. It makes a plain
    /// operand scaled (set_scaling, dynamic_rescale).
    bool chooses_scale() const;
    /// The scale is that of the only operand, and data is what the operator makes of its data: `scale: x.scale`, `data: self(x.data)`.
    bool carries_scale() const;
    /// Index of an operand or result by name; -1 when there is none.
    int operand_index(const std::string &name) const;
    int result_index(const std::string &name) const;
    /// True when data, or what stands on plain results, is made of data * scale (class UNSC): it is left out, or names a whole operand.
    bool forms_full_values() const;

private:
    const std::vector<Expression> *find_scale(const std::string &strategy) const;
    bool names_operand(const Expression &expression) const;
};

} // namespace scalide

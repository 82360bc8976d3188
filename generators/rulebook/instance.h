#pragma once
#include "rulebook/builder.h"

namespace scalide {

/// How scales are rounded to powers of two. `stochastic`: randomly up or down, so that the mean does not change.
enum class Rounding { down, up, nearest, none, stochastic };

/// Settings of a scaled program: the attributes `strategy`, `rounding` and `key` in its text.
struct ScaleSettings {
    std::string strategy = "l2"; ///< one of `strategies`
    Rounding rounding = Rounding::down;
    std::string key = "key"; ///< the u32[2] argument with the key for random rounding
};
std::string_view to_string(Rounding rounding);
std::optional<Rounding> parse_rounding(std::string_view word);

/// One operand of an instance: a plain value, or the two components of a scaled array. In a scaled instance, a plain operand means data =
/// value and scale = 1 (f32).
struct ScaledValue {
    ValueId value = -1;            ///< the plain value, or the full value after it was computed
    ValueId data = -1, scale = -1; ///< the scale is an f32 scalar
    bool is_scaled() const { return scale >= 0; }
};

/// A rule, bound to the operands of one node in a program under construction. Its functions turn the expressions of the rule into nodes.
///
/// In rule text, reductions keep their axes; scalars and axes of extent 1 broadcast; integers and low-precision floats are promoted;
/// attributes, pi and inf are numbers; each let is computed once. A sub-expression of attributes, sizes and literals becomes a constant.
class Instance {
public:
    /// `operands` are in node order. A variadic operand takes all remaining ones.
    Instance(Builder &builder, const Rule &rule, std::vector<ScaledValue> operands, Attributes attributes, ScaleSettings settings = {});
    Instance(Instance &&);
    ~Instance();

    /// Returns the values of the results, computed from full values. For a base operator it appends the node itself. The types are the
    /// inferred types.
    std::vector<ValueId> value();
    /// Returns the scale of one result, an f32 scalar. It is computed in f64 and clamped to {0} and [2^-126, 2^127].
    ValueId scale(int result);
    /// Returns the data of the result for the stored scale. It includes the factor that the clamp removed from the scale.
    ValueId data(int result, ValueId scale);
    /// Returns a plain result of scaled operands: `on_plain`, or `value` of full values.
    ValueId plain(int result);
    /// Returns the gradient (cotangent) of operand number `operand`, or -1 if it is zero. `outs` are the results of the node, and `cts` are
    /// their cotangents (-1: zero). For GradientKind::expressions only.
    ValueId gradient(int operand, const std::vector<ValueId> &outs, const std::vector<ValueId> &cts);

private:
    struct State;
    std::unique_ptr<State> state_;
};

} // namespace scalide

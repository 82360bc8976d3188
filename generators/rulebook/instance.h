#pragma once
#include "rulebook/builder.h"

namespace scalide {

/// How scales are rounded to powers of two; `stochastic`: to one beside it at random, so that the mean stays.
enum class Rounding { down, up, nearest, none, stochastic };

/// Settings of a scaled program (attributes `strategy`, `rounding` and `key` in its text).
struct ScaleSettings {
    std::string strategy = "l2"; ///< one of strategies
    Rounding rounding = Rounding::down;
    std::string key = "key"; ///< the argument that random rounding draws from, u32[2]
};
std::string_view to_string(Rounding rounding);
std::optional<Rounding> parse_rounding(std::string_view word);

/// One operand of an instance: a plain value, or the two parts of a scaled one. A plain operand in a scaled instance stands for
/// data = value, scale = 1 (f32).
struct ScaledValue {
    ValueId value = -1;            ///< plain, or the full value once formed
    ValueId data = -1, scale = -1; ///< scale: rank-0 f32
    bool is_scaled() const { return scale >= 0; }
};

/// A rule bound to the operands of one node, in a program under construction. Its functions turn the rule's expressions into nodes.
///
/// In rule text reductions keep their axes, rank-0 and extent-1 operands broadcast, integers and narrower floats promote, attributes,
/// pi and inf are numbers, and lets are made once. A sub-expression of attributes, sizes and literals alone becomes a constant.
class Instance {
public:
    /// `operands` are flat, in node order: variadic operands take the rest.
    Instance(Builder &builder, const Rule &rule, std::vector<ScaledValue> operands, Attributes attributes, ScaleSettings settings = {});
    Instance(Instance &&);
    ~Instance();

    /// The rule's `value`, by result, on full values. For base operators: the node itself. Result types are exactly the inferred ones.
    std::vector<ValueId> value();
    /// Rank-0 f32 scale of one result: the rule's scale in f64, clamped to {0} and [2^-126, 2^127], stored as f32.
    ValueId scale(int result);
    /// Data of that result, given the stored scale; includes the ratio that the clamp took away.
    ValueId data(int result, ValueId scale);
    /// A plain result of scaled operands: `on_plain`, else `value` on full values.
    ValueId plain(int result);
    /// Cotangent of flat operand `operand`, or -1 when none flows. `outs` are the node's results, `cts` their cotangents (-1: zero).
    /// For GradientKind::expressions only.
    ValueId gradient(int operand, const std::vector<ValueId> &outs, const std::vector<ValueId> &cts);

private:
    struct State;
    std::unique_ptr<State> state_;
};

} // namespace scalide

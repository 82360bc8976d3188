#pragma once
#include "rulebook/instance.h"
#include "rulebook/term.h"
#include <functional>

namespace scalide {

/// The field that an expression belongs to.
enum class Place {
    value, ///< value, grad, data, on_plain: arithmetic in f32 or the dtype of the operands
    scale, ///< scale: arithmetic on scalars in f64
};

/// Returns the operator that rounds to a power of two, or "" for Rounding::none.
std::string_view power_of_two_operator(Rounding rounding);

/// Returns the line of a user that the node comes from, or the rule file if the node has none.
const Location &place_of(const Builder &builder, const Rule &rule);

/// Turns the expressions of a rule into nodes, for the operands of one node.
class Elaboration {
public:
    Elaboration(Builder &builder, const Rule &rule, std::vector<ScaledValue> operands, Attributes attributes, ScaleSettings settings);

    Term elaborate(const Expression &expression, Place place);
    /// Elaborates a call of an operator or intrinsic.
    Term call(const std::string &callee, std::vector<Term> arguments, Place place);

    /// Defines a name in addition to operands, attributes and lets: `scale`, results, `ct`, `ct.<result>`.
    void define(const std::string &name, Term term) { names_[name] = std::move(term); }
    /// From now on, a variadic operand means its array number `index`. Nothing: all its arrays.
    void choose_case(std::optional<int> index);

    /// Returns `term` as a node of exactly this type: converted, reshaped by axes of extent 1, or broadcast.
    ValueId fit(const Term &term, Type type);
    /// Returns the full value of one flat operand. For a scaled operand it is data * scale in f32.
    ValueId full(int operand);
    bool mentions(const Expression &expression, const std::string &name) const;

    Builder &builder() { return builder_; }
    /// Returns the place that messages name.
    const Location &where() const { return place_of(builder_, rule_); }
    const Rule &rule() const { return rule_; }
    const std::vector<ScaledValue> &operands() const { return operands_; }
    const Attributes &attributes() const { return attributes_; }
    const ScaleSettings &settings() const { return settings_; }

private:
    Term elaborate_name(const std::string &name, Place place);
    Term elaborate_member(const ExpressionNode &node);
    Term elaborate_call(const ExpressionNode &node, Place place);
    Term elaborate_let(const std::string &name, const Expression &let, Place place);
    Term operand_term(const std::string &name, const std::function<Term(int)> &term);
    ValueId data_part(int operand);
    Term scale_part(int operand) const; ///< 1 for a plain operand
    bool depends_on_scales(const Expression &expression) const;

    Term call_each(const std::string &callee, const std::vector<Term> &arguments, Place place);
    Term call_intrinsic(const std::string &callee, const std::vector<Term> &arguments, Place place);
    Term call_operator(const Rule &callee, std::vector<Term> arguments, Attributes attributes, Place place);
    Term call_elementwise(const Rule &callee, std::vector<Term> arguments, Attributes attributes, Place place);
    Term call_whole(const Rule &callee, const std::vector<Term> &arguments, Attributes attributes);
    /// Removes the arguments after the operands and returns them as attributes, in the declared order.
    Attributes take_attributes(const Rule &callee, std::vector<Term> &arguments) const;
    std::optional<Term> unchanged(const std::string &op, const std::vector<Term> &arguments, const Attributes &attributes,
                                  Place place) const;
    std::optional<Term> fold(const std::string &callee, const std::vector<Term> &arguments) const;
    Term largest(const Term &a, const Term &b, Place place);
    Term random_key_term() const;
    Attribute stream();
    const Rule &callee_rule(const std::string &name) const;

    ValueId literal(const Attribute &value, Dtype dtype);
    ValueId materialize(const Term &term, Dtype dtype);
    ValueId broadcast(const Term &term, const Extents &shape);
    bool makes_scale_in_f32(const Rule &callee, const std::vector<Term> &arguments) const;
    std::vector<Dtype> operand_dtypes(const Rule &callee, const std::vector<Term> &arguments, Place place) const;

    Builder &builder_;
    const Rule &rule_;
    std::vector<ScaledValue> operands_;
    std::vector<Type> types_;
    Attributes attributes_;
    ScaleSettings settings_;
    std::optional<int> case_;
    std::optional<int64_t> stream_;
    std::map<std::string, Term> names_, lets_;
    std::map<std::pair<std::string, Dtype>, ValueId> literals_;
};

} // namespace scalide

#include "expr/base_operators.h"
#include "rulebook/check_rule.h"
#include "rulebook/elaborate.h"
#include "rulebook/intrinsics.h"
#include "rulebook/promotion.h"
#include "rulebook/random_key.h"
#include "rulebook/static_value.h"
#include "rulebook/unplaced.h"
#include <algorithm>
#include <functional>

namespace scalide {

namespace {

/// True for elementwise base operators, and for composites of this family whose result has the shape of an operand.
bool is_elementwise(const Rule &rule) {
    const BaseOperator *base = rule.is_base ? find_base_operator(rule.op) : nullptr;
    return base ? base->shape == Shape::elementwise : rule.family == "elementwise" && rule.results.size() == 1 && !rule.results[0].shape;
}

bool is_symbolic(const Term &term) { return term.constant->kind == Attribute::Kind::integer && !term.constant->integer.is_static(); }

bool is_integer_literal(const Attribute &value) { return value.kind == Attribute::Kind::integer; }

/// A literal gets the dtype of the other operand, unless that dtype cannot represent it.
Dtype meet_literal(Dtype dtype, const Attribute &literal) {
    const bool is_flag = literal.kind == Attribute::Kind::word;
    if (is_flag || is_float(dtype)) return dtype;
    if (!is_integer_literal(literal)) return Dtype::f32;
    return is_integer(dtype) ? dtype : Dtype::i32;
}

/// Returns the call if the shape of the only result is `drop(x, axes)` or `inserted(x, axes)`; otherwise nullptr.
const ExpressionNode *result_shape_call(const Rule &rule, std::string_view function) {
    const Expression &shape = rule.results[0].shape;
    const bool is_call = shape && shape->kind == ExpressionNode::Kind::call && shape->text == function && shape->operands.size() == 2;
    return is_call ? shape.get() : nullptr;
}

/// True if the operator only inserts axes of extent 1.
bool inserts_axes(const Rule &rule) {
    return result_shape_call(rule, "inserted") && rule.value.size() == 1 && rule.value[0]->text == "reshape";
}

/// True if the axes that `call` drops are an attribute of type axis or axes.
bool reduces_axes(const Rule &rule, const ExpressionNode &call) {
    const AttributeSpec *attribute = find_attribute(rule, call.operands[1]->text);
    return attribute && (attribute->type == "axes" || attribute->type == "axis");
}

std::vector<Term> flattened(const Rule &callee, const std::vector<Term> &arguments) {
    std::vector<Term> flat = arguments;
    if (!callee.operands.empty() && callee.operands.back().variadic && flat.back().cases) {
        const std::vector<Term> cases = *flat.back().cases;
        flat.pop_back();
        flat.insert(flat.end(), cases.begin(), cases.end());
    }
    return flat;
}

bool is_zero(const Program &program, const Term &term) {
    if (term.constant) return to_number(*term.constant) == 0;
    const auto node = std::ranges::find(program.nodes, std::vector{term.node}, &Node::results);
    return node != program.nodes.end() && node->op == "constant" && to_number(node->attributes.at("value")) == 0;
}

const OperandSpec &spec_of(const Rule &callee, size_t flat) { return callee.operands[std::min(flat, callee.operands.size() - 1)]; }

} // namespace

const Rule &Elaboration::callee_rule(const std::string &name) const {
    const AttributeSpec *attribute = find_attribute(rule_, name);
    const bool is_choice = attribute && attribute->type == "word";
    return builder_.rulebook().rule(is_choice ? name + "_" + attributes_.at(name).word : name, where());
}

/// `first(xs, n)` for elaborated arguments.
Term first_of(const std::vector<Term> &arguments) {
    const bool is_count = arguments[1].constant && arguments[1].constant->kind == Attribute::Kind::integer;
    if (!arguments[0].cases || !is_count) fail_unplaced("'first' needs a variadic operand and a number that is known at build time");
    const int64_t count = arguments[1].constant->integer.value(), all = std::ssize(*arguments[0].cases);
    if (count < 1 || count > all)
        fail_unplaced("the second argument of 'first' must be from 1 to the number of arrays, " + std::to_string(all),
                      std::to_string(count));
    return make_term(std::vector<Term>(arguments[0].cases->begin(), arguments[0].cases->begin() + count));
}

Term Elaboration::call(const std::string &callee, std::vector<Term> arguments, Place place) {
    if (callee == "first") return first_of(arguments);
    const bool is_self = callee == "self";
    const bool is_intrinsic = !is_self && find_intrinsic(callee);
    const Rule *rule = is_intrinsic ? nullptr : is_self ? &rule_ : &callee_rule(callee);
    const bool takes_cases = rule && !rule->operands.empty() && rule->operands.back().variadic;
    if (!takes_cases && std::ranges::any_of(arguments, [](const Term &term) { return term.cases.has_value(); }))
        return call_each(callee, arguments, place);
    if (is_intrinsic) return call_intrinsic(callee, arguments, place);
    if (is_self) return call_operator(rule_, std::move(arguments), attributes_, place);
    Attributes attributes = take_attributes(*rule, arguments);
    return call_operator(*rule, std::move(arguments), std::move(attributes), place);
}

/// A call with a variadic operand is elaborated once for each array. A call of a binary operator with one variadic argument reduces that
/// argument.
Term Elaboration::call_each(const std::string &callee, const std::vector<Term> &arguments, Place place) {
    const Intrinsic *intrinsic = find_intrinsic(callee);
    const size_t wanted = callee == "self" ? rule_.operands.size() : intrinsic ? intrinsic->arguments : callee_rule(callee).operands.size();
    if (arguments.size() == 1 && wanted == 2) {
        const std::vector<Term> &cases = *arguments[0].cases;
        Term folded = cases.at(0);
        for (size_t i = 1; i < cases.size(); i++) folded = call(callee, {folded, cases[i]}, place);
        return folded;
    }
    const auto mapped = std::ranges::find_if(arguments, [](const Term &term) { return term.cases.has_value(); });
    std::vector<Term> results;
    for (size_t i = 0; i < mapped->cases->size(); i++) {
        std::vector<Term> each;
        for (const Term &argument : arguments) each.push_back(argument.cases ? argument.cases->at(i) : argument);
        results.push_back(call(callee, each, place));
    }
    return make_term(std::move(results));
}

Term Elaboration::call_intrinsic(const std::string &callee, const std::vector<Term> &v, Place place) {
    const auto apply = [&](const std::string &op, std::vector<Term> arguments) { return call(op, std::move(arguments), place); };
    const auto select = [&](const Term &condition, const Term &a, const Term &b) {
        if (condition.constant) return is_true(*condition.constant) ? a : b;
        return apply("select_n", {condition, make_term(std::vector<Term>{b, a})});
    };
    const Term zero = make_term(Attribute(0)), one = make_term(Attribute(1));
    const auto ratio = [&](const Term &a, const Term &b) { // with an array `a`, one comparison of `b` serves all elements
        if (!b.constant && is_single(b) && (a.constant || is_single(a))) return apply("divide_no_nan", {a, b});
        return select(apply("eq", {b, zero}), zero, apply("div", {a, b}));
    };

    const auto pow2 = [&](const Term &a) {
        const std::string op = std::string(power_of_two_operator(settings_.rounding));
        if (settings_.rounding == Rounding::stochastic) return apply(op, {a, random_key_term(), make_term(stream())});
        return op.empty() ? a : apply(op, {a});
    };

    using Meaning = std::function<Term()>;
    const std::map<std::string, Meaning> meanings = {
        {"select", [&] { return select(v[0], v[1], v[2]); }},
        {"ratio", [&] { return ratio(v[0], v[1]); }},
        {"hypot",
         [&] { // m * sqrt(1 + (n / m)^2), where m is the larger magnitude and n the smaller
             const Term a = apply("abs", {v[0]}), b = apply("abs", {v[1]});
             const Term larger = apply("max", {a, b}), part = ratio(apply("min", {a, b}), larger);
             return apply("mul", {larger, apply("sqrt", {apply("add", {one, apply("mul", {part, part})})})});
         }},
        {"largest", [&] { return largest(v[0], v[1], place); }},
        {"pow2", [&] { return pow2(v[0]); }},
        {"unit", [&] { return settings_.strategy == "unit" ? pow2(v[0]) : one; }},
    };
    return meanings.at(callee)();
}

/// If one scale is infinite, the other scale is used, because `ratio` makes infinite data of the first operand. The infinite scale counts
/// as the smallest normal number, not as 0.
Term Elaboration::largest(const Term &a, const Term &b, Place place) {
    const Term infinity = make_term(Attribute(std::numeric_limits<double>::infinity())), least = make_term(Attribute(0x1p-126));
    const auto finite = [&](const Term &scale) { return call("select", {call("lt", {scale, infinity}, place), scale, least}, place); };
    const bool is_one = is_zero(builder_.program(), a) || is_zero(builder_.program(), b);
    return is_one ? call("max", {a, b}, place) : call("max", {finite(a), finite(b)}, place);
}

Term Elaboration::random_key_term() const { return make_term(builder_.program(), random_key(builder_.program(), settings_.key)); }

/// Conversions number their random streams from 1, scales from 2^31. An instance has one stream, so that all its parts are rounded alike.
Attribute Elaboration::stream() {
    if (!stream_) stream_ = (int64_t{1} << 31) + std::ranges::count(builder_.program().nodes, "pow2_stochastic", &Node::op);
    return *stream_;
}

/// Evaluates operators on constants at build time. Sizes that are known only at bind are not evaluated.
std::optional<Term> Elaboration::fold(const std::string &op, const std::vector<Term> &arguments) const {
    const BaseOperator *base = find_base_operator(op);
    if (!base || !base->evaluate || base->arity < 1 || !base->parameter.empty()) return std::nullopt;
    if (!std::ranges::all_of(arguments, [](const Term &term) { return term.constant.has_value(); })) return std::nullopt;
    const bool is_polynomial = op == "add" || op == "sub" || op == "mul";
    if (std::ranges::any_of(arguments, is_symbolic) && !is_polynomial) return std::nullopt;
    std::vector<Attribute> constants;
    for (const Term &argument : arguments) constants.push_back(*argument.constant);
    return make_term(evaluate_operator(op, constants));
}

/// Handles calls that need no node: a conversion to the dtype that the operand already has, and in scale arithmetic, a multiplication by
/// the scale 1 of a plain operand.
std::optional<Term> Elaboration::unchanged(const std::string &op, const std::vector<Term> &arguments, const Attributes &attributes,
                                           Place place) const {
    const auto is_node = [](const Term &term) { return !term.constant && !term.cases; };
    const bool is_conversion = op == "convert_element_type" && is_node(arguments[0]);
    if (is_conversion && to_string(builder_.type(arguments[0].node).dtype) == attributes.at("dtype").word) return arguments[0];
    if (op != "mul" || place != Place::scale) return std::nullopt;
    const auto is_one = [](const Term &term) { return term.constant && *term.constant == Attribute(1.0); };
    if (is_one(arguments[0]) && is_node(arguments[1])) return arguments[1];
    if (is_one(arguments[1]) && is_node(arguments[0])) return arguments[0];
    return std::nullopt;
}

Attributes Elaboration::take_attributes(const Rule &callee, std::vector<Term> &arguments) const {
    Attributes attributes;
    const size_t operands = callee.operands.size();
    for (size_t i = operands; i < arguments.size(); i++) {
        const AttributeSpec &spec = callee.attributes[i - operands];
        if (!arguments[i].constant) fail_unplaced("attribute '" + spec.name + "' of " + callee.op + " must be known at build time");
        attributes[spec.name] = *arguments[i].constant;
    }
    arguments.resize(std::min(operands, arguments.size()));
    for (const AttributeSpec &spec : callee.attributes) {
        if (spec.type != "axes" || spec.default_value || attributes.contains(spec.name) || arguments.empty()) continue;
        std::vector<Attribute> all;
        for (size_t axis = 0; axis < arguments[0].shape.size(); axis++) all.emplace_back(static_cast<int64_t>(axis));
        attributes[spec.name] = Attribute(all);
    }
    return attributes;
}

Term Elaboration::call_operator(const Rule &callee, std::vector<Term> arguments, Attributes attributes, Place place) {
    if (auto folded = fold(callee.op, arguments)) return *folded;
    if (auto same = unchanged(callee.op, arguments, attributes, place)) return *same;
    arguments = flattened(callee, arguments);
    if (is_elementwise(callee)) return call_elementwise(callee, std::move(arguments), std::move(attributes), place);
    return call_whole(callee, arguments, std::move(attributes));
}

/// True for an operator that computes a scale in f32 if its arguments are already f32.
bool Elaboration::makes_scale_in_f32(const Rule &callee, const std::vector<Term> &arguments) const {
    const BaseOperator *base = callee.is_base ? find_base_operator(callee.op) : nullptr;
    const auto is_f32 = [&](const Term &term) { return !term.constant && builder_.type(term.node).dtype == Dtype::f32; };
    return base != nullptr && base->makes_scale && std::ranges::all_of(arguments, is_f32);
}

/// Returns the dtypes of the operands. Operands with the same letter are promoted to one dtype. An operand of a class of floats that is no
/// float is converted to one.
std::vector<Dtype> Elaboration::operand_dtypes(const Rule &callee, const std::vector<Term> &arguments, Place place) const {
    const bool is_wide = place == Place::scale && std::ranges::all_of(arguments, is_single) && !makes_scale_in_f32(callee, arguments);
    const Dtype default_float = is_wide ? Dtype::f64 : Dtype::f32;
    const auto own = [&](size_t i) {
        const Dtype dtype = builder_.type(arguments[i].node).dtype;
        return is_wide && is_float(dtype) ? Dtype::f64 : dtype;
    };
    std::map<std::string, std::optional<Dtype>> tied;
    const auto group = [&](size_t i) {
        const std::string &letter = spec_of(callee, i).letter;
        return letter.empty() ? "#" + std::to_string(i) : letter;
    };
    for (size_t i = 0; i < arguments.size(); i++) {
        std::optional<Dtype> &dtype = tied[group(i)];
        if (!arguments[i].constant) dtype = dtype ? promoted_dtype(*dtype, own(i)) : own(i);
    }
    for (size_t i = 0; i < arguments.size(); i++) {
        std::optional<Dtype> &dtype = tied[group(i)];
        if (arguments[i].constant) dtype = dtype ? meet_literal(*dtype, *arguments[i].constant) : default_float;
    }
    std::vector<Dtype> dtypes;
    for (size_t i = 0; i < arguments.size(); i++) {
        const Dtype dtype = *tied.at(group(i));
        dtypes.push_back(spec_of(callee, i).operand_class == OperandClass::floating && !is_float(dtype) ? default_float : dtype);
    }
    return dtypes;
}

/// Broadcasts the operands and adds the node. If all operands of rank above 0 have the same node axes, the hidden axes of extent 1 need no
/// nodes.
Term Elaboration::call_elementwise(const Rule &callee, std::vector<Term> arguments, Attributes attributes, Place place) {
    const std::vector<Dtype> dtypes = operand_dtypes(callee, arguments, place);
    for (size_t i = 0; i < arguments.size(); i++) {
        if (arguments[i].constant) arguments[i] = make_term(builder_.program(), literal(*arguments[i].constant, dtypes[i]));
        arguments[i].node = builder_.convert(arguments[i].node, dtypes[i]);
        if (dtypes[i] == Dtype::f64) arguments[i] = make_term(builder_.program(), fit(arguments[i], {Dtype::f64, {}}));
    }
    const auto widest = std::ranges::max_element(arguments, {}, [](const Term &term) { return term.shape.size(); });
    Term result = *widest;
    const bool shares_axes = std::ranges::all_of(arguments, [&](const Term &term) {
        const bool is_number = term.shape.empty();
        return is_number || (term.shape == result.shape && term.dims == result.dims);
    });
    if (!shares_axes) {
        for (const Term &argument : arguments) result.shape = broadcast_shape(result.shape, argument.shape);
    }
    const Extents shape = shares_axes ? builder_.type(result.node).shape : result.shape;
    std::vector<ValueId> nodes;
    for (size_t i = 0; i < arguments.size(); i++) {
        const bool stays_single = i == 0 && callee.operands.back().variadic && builder_.type(arguments[i].node).is_scalar();
        if (stays_single)
            nodes.push_back(arguments[i].node);
        else
            nodes.push_back(shares_axes ? builder_.broadcast(arguments[i].node, shape) : broadcast(arguments[i], shape));
    }
    const ValueId node = builder_.add_one(callee.op, nodes, std::move(attributes));
    if (!shares_axes) return make_term(builder_.program(), node);
    result.node = node;
    return result;
}

/// Adds an operator that is not elementwise. Its operands get the shapes that the rule text describes.
Term Elaboration::call_whole(const Rule &callee, const std::vector<Term> &arguments, Attributes attributes) {
    const std::vector<Dtype> dtypes = operand_dtypes(callee, arguments, Place::value);
    std::vector<ValueId> nodes;
    std::vector<Type> types;
    for (size_t i = 0; i < arguments.size(); i++) {
        nodes.push_back(materialize(arguments[i], dtypes[i]));
        types.push_back(builder_.type(nodes.back()));
    }
    Attributes complete = attributes;
    infer_result_types(callee, types, complete, where());
    const StaticScope scope{callee, types, complete, {}};
    const ExpressionNode *inserts = inserts_axes(callee) ? result_shape_call(callee, "inserted") : nullptr;
    const ExpressionNode *drops = result_shape_call(callee, "drop");
    const bool is_reduction = drops && reduces_axes(callee, *drops);
    Term result = inserts ? make_term(builder_.program(), nodes[0])
                          : make_term(builder_.program(), builder_.add_one(callee.op, nodes, std::move(attributes)));
    if (!inserts && !is_reduction) return result;
    // Finds the axes of the node among the axes of the shape that the rule text describes.
    const Expression kept = is_reduction ? make_call("keep", drops->operands) : callee.results[0].shape;
    result.shape = to_extents(evaluate_static(kept, scope));
    std::vector<int64_t> hidden;
    const Attribute axes = evaluate_static((is_reduction ? drops : inserts)->operands[1], scope);
    for (const Attribute &axis : axes.kind == Attribute::Kind::list ? axes.list : std::vector<Attribute>{axes})
        hidden.push_back(axis.integer.value() < 0 ? axis.integer.value() + std::ssize(result.shape) : axis.integer.value());
    result.dims.clear();
    for (int64_t axis = 0; axis < std::ssize(result.shape); axis++)
        if (std::ranges::find(hidden, axis) == hidden.end()) result.dims.push_back(axis);
    return result;
}

} // namespace scalide

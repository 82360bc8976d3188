#include "rulebook/elaborate.h"
#include "ir/shape.h"
#include "rulebook/check_rule.h"
#include "rulebook/static_value.h"
#include "rulebook/unplaced.h"
#include <algorithm>

namespace scalide {

namespace {

using Kind = ExpressionNode::Kind;

Type part_type(const Program &program, const ScaledValue &operand) {
    return program.type(operand.is_scaled() ? operand.data : operand.value);
}

} // namespace

const Location &place_of(const Builder &builder, const Rule &rule) {
    return to_string(builder.location()).empty() ? rule.location : builder.location();
}

Elaboration::Elaboration(Builder &builder, const Rule &rule, std::vector<ScaledValue> operands, Attributes attributes,
                         ScaleSettings settings)
    : builder_(builder), rule_(rule), operands_(std::move(operands)), attributes_(std::move(attributes)), settings_(std::move(settings)) {
    for (const ScaledValue &operand : operands_) types_.push_back(part_type(builder_.program(), operand));
}

Term Elaboration::elaborate(const Expression &expression, Place place) {
    const ExpressionNode &node = *expression;
    switch (node.kind) {
    case Kind::number: return make_term(evaluate_static(expression, {rule_, types_, attributes_, {}}));
    case Kind::name: return elaborate_name(node.text, place);
    case Kind::member: return elaborate_member(node);
    case Kind::call: return elaborate_call(node, place);
    case Kind::list: break;
    }
    std::vector<Term> elements;
    std::vector<Attribute> constants;
    for (const Expression &element : node.operands) {
        elements.push_back(elaborate(element, place));
        if (elements.back().constant) constants.push_back(*elements.back().constant);
    }
    return constants.size() == elements.size() ? make_term(Attribute(constants)) : make_term(std::move(elements));
}

Term Elaboration::elaborate_name(const std::string &name, Place place) {
    if (rule_.operand_index(name) >= 0)
        return operand_term(name, [this](int operand) { return make_term(builder_.program(), full(operand)); });
    const auto let = std::ranges::find(rule_.lets, name, [](const auto &named) { return named.first; });
    if (let != rule_.lets.end()) return elaborate_let(name, let->second, place);
    if (const auto defined = names_.find(name); defined != names_.end()) return defined->second;
    return make_term(evaluate_static(make_name(name), {rule_, types_, attributes_, {}}));
}

Term Elaboration::elaborate_member(const ExpressionNode &node) {
    const std::string &object = node.operands[0]->text;
    if (object == "ct") return names_.at("ct." + node.text);
    if (node.text == "data") return operand_term(object, [this](int operand) { return make_term(builder_.program(), data_part(operand)); });
    return operand_term(object, [this](int operand) { return scale_part(operand); });
}

/// A let that does not depend on scales has one meaning everywhere. It is elaborated once for scale and data.
Term Elaboration::elaborate_let(const std::string &name, const Expression &let, Place place) {
    const Place own = depends_on_scales(let) ? place : Place::value;
    const std::string key = name + (own == Place::scale ? ".f64" : "") + (case_ ? "." + std::to_string(*case_) : "");
    const auto made = lets_.find(key);
    if (made != lets_.end()) return made->second;
    return lets_[key] = elaborate(let, own);
}

bool Elaboration::depends_on_scales(const Expression &expression) const {
    const ExpressionNode &node = *expression;
    if (node.kind == Kind::member) return node.text == "scale";
    if (node.kind == Kind::name) {
        const bool is_whole_operand = rule_.operand_index(node.text) >= 0;
        const auto let = std::ranges::find(rule_.lets, node.text, [](const auto &named) { return named.first; });
        return is_whole_operand || node.text == "scale" || (let != rule_.lets.end() && depends_on_scales(let->second));
    }
    if (node.kind == Kind::call && find_shape_function(node.text)) return false;
    return std::ranges::any_of(node.operands, [this](const Expression &operand) { return depends_on_scales(operand); });
}

bool Elaboration::mentions(const Expression &expression, const std::string &name) const {
    return std::ranges::any_of(free_names(expression), [&](const std::string &used) {
        const auto let = std::ranges::find(rule_.lets, used, [](const auto &named) { return named.first; });
        return used == name || (let != rule_.lets.end() && mentions(let->second, name));
    });
}

void Elaboration::choose_case(std::optional<int> index) { case_ = index; }

Term Elaboration::operand_term(const std::string &name, const std::function<Term(int)> &term) {
    const int operand = rule_.operand_index(name);
    if (!rule_.operands[operand].variadic) return term(operand);
    if (case_) return term(operand + *case_);
    std::vector<Term> cases;
    for (int flat = operand; flat < static_cast<int>(operands_.size()); flat++) cases.push_back(term(flat));
    return make_term(std::move(cases));
}

ValueId Elaboration::full(int operand) {
    ScaledValue &value = operands_[operand];
    if (value.value < 0) {
        const ValueId data = builder_.convert(value.data, Dtype::f32);
        value.value = builder_.add_one("mul", {data, builder_.broadcast(value.scale, builder_.type(data).shape)});
    }
    return value.value;
}

ValueId Elaboration::data_part(int operand) {
    const ScaledValue &value = operands_[operand];
    return value.is_scaled() ? value.data : value.value;
}

Term Elaboration::scale_part(int operand) const {
    const ScaledValue &value = operands_[operand];
    return value.is_scaled() ? make_term(builder_.program(), value.scale) : make_term(Attribute(1.0));
}

Term Elaboration::elaborate_call(const ExpressionNode &node, Place place) {
    if (find_shape_function(node.text)) {
        const auto call = std::make_shared<ExpressionNode>(node);
        return make_term(evaluate_static(call, {rule_, types_, attributes_, {}}));
    }
    if (node.text == "index") {
        if (case_) return make_term(Attribute(*case_));
        std::vector<Term> numbers;
        const size_t count = operands_.size() + 1 - rule_.operands.size();
        for (size_t i = 0; i < count; i++) numbers.push_back(make_term(Attribute(static_cast<int64_t>(i))));
        return make_term(std::move(numbers));
    }
    std::vector<Term> arguments;
    for (const Expression &operand : node.operands) arguments.push_back(elaborate(operand, place));
    return call(node.text, std::move(arguments), place);
}

ValueId Elaboration::literal(const Attribute &value, Dtype dtype) {
    const auto [made, is_new] = literals_.emplace(std::pair(to_string(value), dtype), -1);
    if (!is_new) return made->second;
    if (value.kind == Attribute::Kind::integer) return made->second = builder_.size(value.integer, dtype);
    const bool is_flag = value == make_flag(true) || value == make_flag(false);
    if (!is_flag && value.kind != Attribute::Kind::number)
        fail_unplaced("a constant in an array expression must be a number", to_string(value));
    return made->second = builder_.constant(is_flag ? is_true(value) : value.number, dtype);
}

/// Returns the array of a term in the shape that the rule text describes.
ValueId Elaboration::materialize(const Term &term, Dtype dtype) {
    if (term.constant) return literal(*term.constant, dtype);
    if (term.cases) fail_unplaced("must be one array, not one array for each array of a variadic operand");
    const ValueId node = builder_.convert(term.node, dtype);
    if (builder_.type(node).shape == term.shape) return node;
    return builder_.add_one("reshape", {node}, {{"shape", to_attribute(term.shape)}});
}

/// Broadcasts the array of a term to `shape` with one node.
ValueId Elaboration::broadcast(const Term &term, const Extents &shape) {
    if (builder_.type(term.node).shape == shape) return term.node;
    const int64_t offset = std::ssize(shape) - std::ssize(term.shape);
    std::vector<int64_t> dims;
    for (const int64_t dim : term.dims) dims.push_back(dim + offset);
    return builder_.add_one("broadcast_in_dim", {term.node}, {{"shape", to_attribute(shape)}, {"dims", to_attribute(dims)}});
}

ValueId Elaboration::fit(const Term &term, Type type) {
    if (term.constant) return builder_.broadcast(literal(*term.constant, type.dtype), type.shape);
    if (term.cases) fail_unplaced("must be one array, not one array for each array of a variadic operand");
    Term fitting = term;
    fitting.node = builder_.convert(term.node, type.dtype);
    const Extents shape = builder_.type(fitting.node).shape;
    if (shape == type.shape) return fitting.node;
    if (without_ones(shape) == without_ones(type.shape))
        return builder_.add_one("reshape", {fitting.node}, {{"shape", to_attribute(type.shape)}});
    if (term.shape.size() > type.shape.size()) fail_unplaced("must have the shape " + to_string(type.shape), to_string(term.shape));
    return broadcast(fitting, type.shape);
}

} // namespace scalide

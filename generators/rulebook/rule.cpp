#include "rulebook/rule.h"
#include "rulebook/static_value.h"
#include <algorithm>
#include <set>

namespace scalide {

namespace {

template<typename Spec>
int index_of(const std::vector<Spec> &specs, const std::string &name) {
    const auto found = std::ranges::find(specs, name, &Spec::name);
    return found == specs.end() ? -1 : static_cast<int>(found - specs.begin());
}

/// True for `x.word`.
bool is_part(const Expression &expression, const std::string &operand, std::string_view word) {
    return expression != nullptr && expression->kind == ExpressionNode::Kind::member && expression->text == word &&
           expression->operands[0]->text == operand;
}

} // namespace

bool Rule::is_plain() const { return std::ranges::all_of(results, &ResultSpec::plain); }

bool Rule::takes_program() const {
    return std::ranges::any_of(attributes, [](const AttributeSpec &spec) { return spec.type == "program"; });
}

std::string Rule::result_name(size_t index) const {
    const ResultSpec &spec = result(index);
    return spec.each ? spec.name + std::to_string(index) : spec.name;
}

const std::vector<Expression> *Rule::find_scale(const std::string &strategy) const {
    for (const std::string &key : {strategy, std::string("l2"), std::string()}) {
        const auto found = scale.find(key);
        if (found != scale.end()) return &found->second;
    }
    return nullptr;
}

const std::vector<Expression> &Rule::scale_of(const std::string &strategy) const {
    const std::vector<Expression> *found = find_scale(strategy);
    internal_check(found != nullptr, "rule " + op + " has no scale");
    return *found;
}

/// True if the expression uses a whole operand, directly or through a let.
bool Rule::names_operand(const Expression &expression) const {
    if (expression->kind == ExpressionNode::Kind::member) return false;
    if (expression->kind == ExpressionNode::Kind::name) {
        static const std::set<OperandClass> may_have_a_scale{OperandClass::floating, OperandClass::number, OperandClass::any,
                                                             OperandClass::every};
        const int operand = operand_index(expression->text);
        if (operand >= 0) return may_have_a_scale.contains(operands[operand].operand_class);
        const auto let = std::ranges::find(lets, expression->text, &std::pair<std::string, Expression>::first);
        return let != lets.end() && names_operand(let->second);
    }
    const bool is_shape = expression->kind == ExpressionNode::Kind::call && find_shape_function(expression->text) != nullptr;
    return !is_shape && std::ranges::any_of(expression->operands, [this](const Expression &operand) { return names_operand(operand); });
}

bool Rule::forms_full_values() const {
    const std::vector<Expression> &said = is_plain() ? on_plain : data;
    return said.size() != results.size() ||
           std::ranges::any_of(said, [this](const Expression &each) { return each == nullptr || names_operand(each); });
}

bool Rule::chooses_scale() const {
    const bool keeps_value =
        !operands.empty() && value.size() == 1 && value[0]->kind == ExpressionNode::Kind::name && value[0]->text == operands[0].name;
    return keeps_value && std::ranges::any_of(scale, [this](const auto &by_strategy) {
               return !is_part(by_strategy.second[0], operands[0].name, "scale");
           });
}

bool Rule::carries_scale() const {
    if (operands.size() != 1 || results.size() != 1 || scale.size() != 1 || data.size() != 1 || data[0] == nullptr) return false;
    const bool is_own = data[0]->kind == ExpressionNode::Kind::call && data[0]->text == "self";
    return is_own && is_part(data[0]->operands[0], operands[0].name, "data") &&
           is_part(scale.begin()->second[0], operands[0].name, "scale");
}

int Rule::operand_index(const std::string &name) const { return index_of(operands, name); }

int Rule::result_index(const std::string &name) const { return index_of(results, name); }

} // namespace scalide

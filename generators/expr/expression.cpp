#include "expr/expression.h"
#include <algorithm>

namespace scalide {

namespace {

using Kind = ExpressionNode::Kind;

Expression make(ExpressionNode node) {
    for (const Expression &operand : node.operands) node.depth = std::max(node.depth, operand->depth + 1);
    return std::make_shared<const ExpressionNode>(std::move(node));
}

void collect_free_names(const Expression &expression, std::vector<std::string> &names) {
    if (expression->kind == Kind::name && std::ranges::find(names, expression->text) == names.end()) names.push_back(expression->text);
    for (const Expression &operand : expression->operands) collect_free_names(operand, names);
}

} // namespace

Expression make_number(double number, Location location) { return make({Kind::number, number, "", {}, std::move(location)}); }

Expression make_name(std::string name, Location location) { return make({Kind::name, 0, std::move(name), {}, std::move(location)}); }

Expression make_member(Expression object, std::string word, Location location) {
    return make({Kind::member, 0, std::move(word), {std::move(object)}, std::move(location)});
}

Expression make_call(std::string callee, std::vector<Expression> operands, Location location) {
    return make({Kind::call, 0, std::move(callee), std::move(operands), std::move(location)});
}

Expression make_list(std::vector<Expression> elements, Location location) {
    return make({Kind::list, 0, "", std::move(elements), std::move(location)});
}

bool equal(const Expression &a, const Expression &b) {
    return a->kind == b->kind && a->number == b->number && a->text == b->text && std::ranges::equal(a->operands, b->operands, equal);
}

std::vector<std::string> free_names(const Expression &expression) {
    std::vector<std::string> names;
    collect_free_names(expression, names);
    return names;
}

} // namespace scalide

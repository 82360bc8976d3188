#include "rulebook/check_rule.h"
#include "expr/base_operators.h"
#include "ir/regions.h"
#include "rulebook/intrinsics.h"
#include "rulebook/nearest.h"
#include "rulebook/static_value.h"
#include <algorithm>
#include <functional>

namespace scalide {

namespace {

using Kind = ExpressionNode::Kind;

/// What an expression may name, in addition to operands, attributes and lets.
struct Context {
    bool parts = false;      ///< x.data, x.scale, scale, self: in scale, data, on_plain
    bool cotangents = false; ///< ct and results: in grad
    bool is_static = false;  ///< where, results: shape functions only
};

/// Checks one expression of a rule.
class Checker {
public:
    Checker(const Rule &rule, const Rulebook &rulebook, std::string path, Context context)
        : rule_(rule), rulebook_(rulebook), path_(std::move(path)), context_(context) {}

    void check(const Expression &expression) const {
        const ExpressionNode &node = *expression;
        switch (node.kind) {
        case Kind::number: return;
        case Kind::name: return check_name(node);
        case Kind::member: return check_member(node);
        case Kind::call: return check_call(node);
        case Kind::list:
            for (const Expression &element : node.operands) check(element);
            return;
        }
    }

private:
    [[noreturn]] void fail(const ExpressionNode &node, const std::string &requirement, const std::string &got = "",
                           const std::string &way_out = "") const {
        throw UserError({node.location, path_, requirement, got, way_out});
    }

    std::vector<std::string> known_names() const {
        std::vector<std::string> names;
        for (const OperandSpec &operand : rule_.operands) names.push_back(operand.name);
        for (const AttributeSpec &attribute : rule_.attributes)
            if (!attribute.optional) names.push_back(attribute.name);
        for (const auto &[name, let] : rule_.lets) names.push_back(name);
        if (context_.cotangents || context_.is_static)
            for (const ResultSpec &result : rule_.results) names.push_back(result.name);
        if (context_.cotangents) names.push_back("ct");
        if (context_.parts) names.push_back("scale");
        return names;
    }

    void check_name(const ExpressionNode &node) const {
        const std::vector<std::string> names = known_names();
        if (std::ranges::find(names, node.text) != names.end() || is_constant_name(node.text, rule_)) return;
        fail(node, "unknown name '" + node.text + "'", "", suggestion(node.text, names));
    }

    /// Checks `x.data`, `x.scale`, or `ct.<result>` for a rule with several results.
    void check_member(const ExpressionNode &node) const {
        const ExpressionNode &object = *node.operands[0];
        const bool is_cotangent = context_.cotangents && object.kind == Kind::name && object.text == "ct";
        if (is_cotangent) {
            if (rule_.result_index(node.text) < 0) fail(node, "'ct.' must be followed by the name of a result", "'" + node.text + "'");
            return;
        }
        const bool is_part = node.text == "data" || node.text == "scale";
        if (!is_part || object.kind != Kind::name || rule_.operand_index(object.text) < 0)
            fail(node, "only .data or .scale can follow the name of an operand",
                 "'" + to_string(object_expression(node)) + "." + node.text + "'");
        if (!context_.parts)
            fail(node, "'" + object.text + "." + node.text + "' cannot be used here", "",
                 ".data and .scale are available in scale, data and on_plain");
    }

    static const Expression &object_expression(const ExpressionNode &node) { return node.operands[0]; }

    bool mentions_variadic(const ExpressionNode &node) const {
        if (node.kind == Kind::name) {
            const int operand = rule_.operand_index(node.text);
            const auto let = std::ranges::find(rule_.lets, node.text, [](const auto &named) { return named.first; });
            return (operand >= 0 && rule_.operands[operand].variadic) || (let != rule_.lets.end() && mentions_variadic(*let->second));
        }
        return std::ranges::any_of(node.operands, [this](const Expression &operand) { return mentions_variadic(*operand); });
    }

    void check_count(const ExpressionNode &node, int least, int most) const {
        const int count = static_cast<int>(node.operands.size());
        // a single variadic argument of a binary operator is reduced with that operator
        const bool folds = count == 1 && least == 2 && most == 2 && mentions_variadic(*node.operands[0]);
        if (folds || (count >= least && (most < 0 || count <= most))) return;
        const std::string range = most < 0        ? "at least " + std::to_string(least)
                                  : least == most ? std::to_string(least)
                                                  : std::to_string(least) + " to " + std::to_string(most);
        fail(node, "'" + node.text + "' takes " + range + (range == "1" ? " argument" : " arguments"), std::to_string(count));
    }

    std::vector<std::string> known_functions() const {
        std::vector<std::string> names;
        for (const ShapeFunction &function : shape_functions()) names.emplace_back(function.name);
        if (context_.is_static) return names;
        for (const Intrinsic &intrinsic : intrinsics()) names.emplace_back(intrinsic.name);
        for (const Rule *rule : rulebook_.rules()) names.push_back(rule->op);
        return names;
    }

    void check_intrinsic(const ExpressionNode &node, const Intrinsic &intrinsic) const {
        if (intrinsic.needs_parts && !context_.parts && !context_.cotangents)
            fail(node, "'" + node.text + "' cannot be used here", "", "It is available in scale, data, on_plain and grad");
        if (node.text == "self") return check_count(node, static_cast<int>(rule_.operands.size()), static_cast<int>(rule_.operands.size()));
        check_count(node, intrinsic.arguments, intrinsic.arguments);
        if (node.text == "index" && !mentions_variadic(*node.operands[0]))
            fail(node, "the argument of 'index' must be the name of a variadic operand");
    }

    /// Checks `norm(x)`, where the value of the attribute `norm` names the operator.
    void check_chosen(const ExpressionNode &node, const AttributeSpec &attribute) const {
        for (const std::string &choice : attribute.choices) {
            const Rule *callee = rulebook_.find(attribute.name + "_" + choice);
            if (!callee)
                fail(node,
                     "'" + node.text + "' as a function needs the operator '" + attribute.name + "_" + choice + "', which has no rule");
            check_count(node, argument_count(*callee).least, argument_count(*callee).most);
        }
    }

    void check_callee(const ExpressionNode &node) const {
        if (const ShapeFunction *function = find_shape_function(node.text)) return check_count(node, function->least, function->most);
        if (context_.is_static) {
            if (node.text == "select") return check_count(node, 3, 3);
            const BaseOperator *base = find_base_operator(node.text);
            if (base && base->evaluate && base->arity > 0) return check_count(node, base->arity, base->arity);
        } else {
            if (const Intrinsic *intrinsic = find_intrinsic(node.text)) return check_intrinsic(node, *intrinsic);
            const AttributeSpec *attribute = find_attribute(rule_, node.text);
            if (attribute && attribute->type == "word") return check_chosen(node, *attribute);
            if (const Rule *callee = rulebook_.find(node.text))
                return check_count(node, argument_count(*callee).least, argument_count(*callee).most);
        }
        fail(node, "unknown function '" + node.text + "'", "", nearest_only(node.text));
    }

    std::string nearest_only(const std::string &word) const {
        return suggestion(word, known_functions(), "It must be an operator with a rule, or a function of docs/reference/rules.md");
    }

    void check_call(const ExpressionNode &node) const {
        check_callee(node);
        for (const Expression &operand : node.operands) check(operand);
    }

    const Rule &rule_;
    const Rulebook &rulebook_;
    std::string path_;
    Context context_;
};

bool mentions(const ExpressionNode &node, const std::function<bool(const ExpressionNode &)> &predicate) {
    return predicate(node) || std::ranges::any_of(node.operands, [&](const Expression &operand) { return mentions(*operand, predicate); });
}

bool needs_parts(const ExpressionNode &node) {
    return node.kind == Kind::member
               ? node.text == "data" || node.text == "scale"
               : (node.kind == Kind::name && node.text == "scale") || (node.kind == Kind::call && node.text == "self");
}

bool needs_cotangents(const Rule &rule, const ExpressionNode &node) {
    return node.kind == Kind::name && (node.text == "ct" || rule.result_index(node.text) >= 0);
}

/// Knows the lets of a rule. A let sees the lets before it. It is allowed only where the lets that it uses are allowed.
class Lets {
public:
    explicit Lets(const Rule &rule) : rule_(rule) {
        for (const auto &[name, let] : rule.lets) contexts_.emplace(name, context_of(let));
    }

    Context context_of(const Expression &expression) const {
        Context context;
        context.parts = mentions(*expression, needs_parts);
        context.cotangents = mentions(*expression, [this](const ExpressionNode &node) { return needs_cotangents(rule_, node); });
        for (const std::string &name : free_names(expression)) {
            const auto let = contexts_.find(name);
            if (let == contexts_.end()) continue;
            context.parts |= let->second.parts;
            context.cotangents |= let->second.cotangents;
        }
        return context;
    }

private:
    const Rule &rule_;
    std::map<std::string, Context> contexts_;
};

void check_unique_names(const Rule &rule) {
    std::vector<std::string> names = {"ct", "scale", "pi", "inf", "true", "false"};
    const auto take = [&](const std::string &name, const std::string &field) {
        if (std::ranges::find(names, name) != names.end())
            throw UserError({rule.location, rule.op + "." + field + "." + name, "the name must be unique and must not be a reserved word",
                             "'" + name + "'", ""});
        names.push_back(name);
    };
    for (const OperandSpec &operand : rule.operands) take(operand.name, "operands");
    for (const AttributeSpec &attribute : rule.attributes) take(attribute.name, "attrs");
    for (const ResultSpec &result : rule.results)
        if (result.name != "scale") take(result.name, "results");
    for (const auto &[name, let] : rule.lets) take(name, "let");
}

/// Checks the expressions of one rule, field by field.
class RuleChecker {
public:
    RuleChecker(const Rule &rule, const Rulebook &rulebook) : rule_(rule), rulebook_(rulebook), lets_(rule) {}

    void check() const {
        if (find_region_kind(rule_.op) != nullptr)
            throw UserError(statement(rule_.location, "'" + rule_.op + "' is a loop or a branch of programs, so no rule can have its name",
                                      "Rename the operator"));
        check_unique_names(rule_);
        check_lets();
        for (const Constraint &constraint : rule_.constraints) check("where." + constraint.id, constraint.require, {.is_static = true});
        for (const ResultSpec &result : rule_.results) {
            check("results." + result.name + ".dtype", result.dtype, {.is_static = true});
            check("results." + result.name + ".shape", result.shape, {.is_static = true});
        }
        check_all("value", rule_.value, {});
        for (const auto &[strategy, expressions] : rule_.scale) {
            const std::string field = strategy.empty() ? "scale" : "scale." + strategy;
            check_all(field, expressions, {.parts = true});
            for (const Expression &expression : expressions) check_independent(field, expression);
        }
        check_all("data", rule_.data, {.parts = true});
        check_all("on_plain", rule_.on_plain, {.parts = true});
        for (const auto &[operand, expression] : rule_.gradient) check("grad." + operand, expression, {.cotangents = true});
    }

private:
    void check_lets() const {
        std::vector<std::string> later;
        for (const auto &[name, let] : rule_.lets) later.push_back(name);
        for (const auto &[name, let] : rule_.lets) {
            for (const std::string &used : free_names(let))
                if (std::ranges::find(later, used) != later.end())
                    throw UserError({let->location, rule_.op + ".let." + name, "must use only earlier lets", "'" + used + "'", ""});
            later.erase(later.begin());
            Checker(rule_, rulebook_, rule_.op + ".let." + name, lets_.context_of(let)).check(let);
        }
    }

    void check_all(const std::string &field, const std::vector<Expression> &expressions, Context context) const {
        for (size_t i = 0; i < expressions.size(); i++)
            check(expressions.size() == 1 ? field : field + "." + rule_.results[i].name, expressions[i], context);
    }

    /// Checks that the expression of a scale does not use `scale`, which has no value yet.
    void check_independent(const std::string &field, const Expression &expression) const {
        if (!expression) return;
        for (const std::string &name : free_names(expression)) {
            if (name == "scale") throw UserError({expression->location, rule_.op + "." + field, "must not use itself", "'scale'", ""});
            for (const auto &[let_name, let] : rule_.lets)
                if (let_name == name) check_independent(field, let);
        }
    }

    void check(const std::string &field, const Expression &expression, Context context) const {
        if (!expression) return;
        const std::string path = rule_.op + "." + field;
        Checker(rule_, rulebook_, path, context).check(expression);
        if (context.is_static) return;
        const Context needed = lets_.context_of(expression);
        if (needed.parts && !context.parts && !context.cotangents)
            throw UserError({expression->location, path, "must not use a let that contains .data, .scale or self", "", ""});
        if (needed.cotangents && !context.cotangents)
            throw UserError({expression->location, path, "must not use a let that contains ct or results", "", ""});
    }

    const Rule &rule_;
    const Rulebook &rulebook_;
    Lets lets_;
};

void collect_operators(const Rule &rule, const Rulebook &rulebook, const ExpressionNode &node, std::vector<std::string> &ops) {
    const auto take = [&](const std::string &op) {
        if (rulebook.find(op) && std::ranges::find(ops, op) == ops.end()) ops.push_back(op);
    };
    if (node.kind == Kind::call && !find_shape_function(node.text) && !find_intrinsic(node.text)) {
        take(node.text);
        if (const AttributeSpec *attribute = find_attribute(rule, node.text))
            for (const std::string &choice : attribute->choices) take(attribute->name + "_" + choice);
    }
    for (const Expression &operand : node.operands) collect_operators(rule, rulebook, *operand, ops);
}

void check_recursion(const Rule &rule, const Rulebook &rulebook, std::vector<std::string> &chain, std::vector<std::string> &done) {
    if (std::ranges::find(done, rule.op) != done.end()) return;
    const bool repeats = std::ranges::find(chain, rule.op) != chain.end();
    chain.push_back(rule.op);
    if (repeats) {
        std::string text;
        for (const std::string &op : chain) text += (text.empty() ? "" : " -> ") + op;
        throw UserError({rule.location, rule.op + ".value", "must not use itself", text, ""});
    }
    for (const std::string &op : used_operators(rule, rulebook)) check_recursion(*rulebook.find(op), rulebook, chain, done);
    chain.pop_back();
    done.push_back(rule.op);
}

} // namespace

const AttributeSpec *find_attribute(const Rule &rule, const std::string &name) {
    const auto found = std::ranges::find(rule.attributes, name, &AttributeSpec::name);
    return found == rule.attributes.end() ? nullptr : &*found;
}

ArgumentCount argument_count(const Rule &callee) {
    const int operands = static_cast<int>(callee.operands.size());
    int required = 0;
    for (size_t i = 0; i < callee.attributes.size(); i++) {
        const AttributeSpec &attribute = callee.attributes[i];
        if (attribute.is_required() && attribute.type != "axes") required = static_cast<int>(i) + 1;
    }
    return {operands + required, operands + static_cast<int>(callee.attributes.size())};
}

std::vector<std::string> used_operators(const Rule &rule, const Rulebook &rulebook) {
    std::vector<std::string> ops;
    // Only lets that the value uses count, because a let may serve other fields alone.
    std::vector<Expression> reached = rule.value;
    for (size_t i = 0; i < reached.size(); i++) {
        collect_operators(rule, rulebook, *reached[i], ops);
        for (const std::string &name : free_names(reached[i]))
            for (const auto &[let_name, let] : rule.lets)
                if (let_name == name && std::ranges::find(reached, let) == reached.end()) reached.push_back(let);
    }
    return ops;
}

void check_rule(const Rule &rule, const Rulebook &rulebook) {
    RuleChecker(rule, rulebook).check();
    if (rule.is_base && !find_base_operator(rule.op))
        throw UserError({rule.location, rule.op + ".value", "must be an expression, because '" + rule.op + "' is not a base operator",
                         "base", "docs/reference/rules.md lists the base operators"});
    std::vector<std::string> chain, done;
    check_recursion(rule, rulebook, chain, done);
}

} // namespace scalide

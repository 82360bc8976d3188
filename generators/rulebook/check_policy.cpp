#include "rulebook/check_policy.h"
#include "rulebook/complete_attributes.h"
#include "rulebook/nearest.h"
#include "rulebook/random_key.h"
#include <algorithm>

namespace scalide {

namespace {

using Place = PolicyRule::Place;

/// The rules of the operators that a row chooses.
std::vector<const Rule *> chosen(const PolicyRule &row, const Rulebook &rulebook) {
    if (row.ops.empty()) return rulebook.rules();
    std::vector<const Rule *> rules;
    for (const std::string &op : row.ops) rules.push_back(&rulebook.rule(op, row.location));
    return rules;
}

/// The names that operands or results of these operators have.
std::vector<std::string> names_of(const std::vector<const Rule *> &rules, Place place) {
    std::vector<std::string> names;
    for (const Rule *rule : rules) {
        if (place == Place::operand)
            for (const OperandSpec &operand : rule->operands) names.push_back(operand.name);
        else
            for (const ResultSpec &result : rule->results) names.push_back(result.name);
    }
    std::ranges::sort(names);
    names.erase(std::unique(names.begin(), names.end()), names.end());
    return names;
}

/// Arguments and results of programs have names of their own; those of operators are in the rulebook.
void check_which(const PolicyRule &row, const Rulebook &rulebook) {
    const std::vector<const Rule *> rules = chosen(row, rulebook);
    if (row.place != Place::operand && row.place != Place::node_result) return;
    std::vector<std::string> words = place_words(row.place);
    const std::vector<std::string> names = names_of(rules, row.place);
    words.insert(words.end(), names.begin(), names.end());
    if (std::ranges::count(words, row.which)) return;
    const std::string field = row.place == Place::operand ? "operand" : "result";
    if (row.ops.empty() && nearest(row.which, words).empty()) words = place_words(row.place);
    throw UserError({row.location, "policy.rules." + field, "must be a word of policies or the name of " + field + "s of the operators",
                     "'" + row.which + "'", suggestion(row.which, words)});
}

bool takes_floats(const OperandSpec &operand) {
    const OperandClass kind = operand.operand_class;
    return kind == OperandClass::floating || kind == OperandClass::number || kind == OperandClass::any;
}

/// The result has the shape of the first operand.
bool keeps_shape(const Rule &rule) {
    const Expression &shape = rule.results[0].shape;
    return shape == nullptr || to_string(shape) == "shape(" + rule.operands[0].name + ")";
}

void check_insertion(const PolicyRule &row, const Insertion &insertion, const Rulebook &rulebook) {
    const Location &where = row.location;
    const Rule &rule = rulebook.rule(insertion.op, where);
    const bool takes_array = !rule.operands.empty() && takes_floats(rule.operands[0]) && !rule.operands[0].variadic;
    const bool hands_over = rule.operands.size() == 2 && takes_floats(rule.operands[1]);
    const bool makes_array = takes_array && rule.results.size() == 1 && !rule.results[0].each && keeps_shape(rule);
    if (!makes_array || (rule.operands.size() != 1 && !takes_key(rule) && !hands_over))
        throw UserError({where, "policy.rules.insert", "must be an operator that makes of a float array another of its shape",
                         "'" + insertion.op + "'", ""});
    Attributes attributes = insertion.attributes;
    complete_attributes(rule, {}, attributes, where);
}

} // namespace

void check_policy(const Policy &policy, const Rulebook &rulebook) {
    for (const PolicyRule &row : policy.rules) {
        check_which(row, rulebook);
        for (const Insertion &insertion : row.insert) check_insertion(row, insertion, rulebook);
    }
}

} // namespace scalide

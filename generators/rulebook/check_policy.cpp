#include "rulebook/check_policy.h"
#include "rulebook/check_rule.h"
#include "rulebook/complete_attributes.h"
#include "rulebook/nearest.h"
#include "rulebook/random_key.h"
#include <algorithm>

namespace scalide {

namespace {

/// The rules of the operators that a row chooses.
std::vector<const Rule *> chosen(const PolicyRule &row, const Rulebook &rulebook) {
    if (row.ops.empty()) return rulebook.rules();
    std::vector<const Rule *> rules;
    for (const std::string &op : row.ops) {
        if (!rulebook.find(op) && nearest_operator(op, {"dot_general"}) == "dot_general")
            throw UserError(unknown_name(row.location, "operator", op, "Did you mean 'dot_general'? It is the operator of every matmul"));
        rules.push_back(&rulebook.rule(op, row.location));
    }
    return rules;
}

/// Returns the names of the operands or results of these operators.
std::vector<std::string> names_of(const std::vector<const Rule *> &rules, PolicyRule::Place place) {
    std::vector<std::string> names;
    for (const Rule *rule : rules) {
        if (place == PolicyRule::Place::operand)
            for (const OperandSpec &operand : rule->operands) names.push_back(operand.name);
        else
            for (const ResultSpec &result : rule->results) names.push_back(result.name);
    }
    std::ranges::sort(names);
    names.erase(std::unique(names.begin(), names.end()), names.end());
    return names;
}

/// Checks that `operands` has one word for all operands, or one word for each operand.
void check_operand_words(const PolicyRule &row, const std::vector<const Rule *> &rules) {
    const std::vector<std::string> &words = place_words(row.place);
    for (const std::string &word : row.operands)
        if (!std::ranges::count(words, word)) throw UserError(unknown_name(row.location, "operand role", word, suggestion(word, words)));
    for (const Rule *rule : rules) {
        const size_t count = rule->operands.size();
        if (row.ops.empty() || row.operands.size() == 1 || row.operands.size() == count) continue;
        throw UserError({row.location, "policy.rules.operands",
                         "must be one word, or one word for each of the " + std::to_string(count) + " operands of " + rule->op,
                         std::to_string(row.operands.size()), ""});
    }
}

/// Checks the names of operands and results, which the rulebook knows. Names of arguments and results of programs depend on the program.
void check_which(const PolicyRule &row, const Rulebook &rulebook) {
    const std::vector<const Rule *> rules = chosen(row, rulebook);
    if (row.place == PolicyRule::Place::node) return check_operand_words(row, rules);
    if (row.place != PolicyRule::Place::operand && row.place != PolicyRule::Place::node_result) return;
    const std::vector<std::string> &roles = place_words(row.place);
    std::vector<std::string> words = roles;
    const std::vector<std::string> names = names_of(rules, row.place);
    words.insert(words.end(), names.begin(), names.end());
    if (std::ranges::count(words, row.which)) return;
    const bool is_operand = row.place == PolicyRule::Place::operand;
    const std::string field = is_operand ? "operand" : "result";
    const std::string known = row.ops.empty() ? "" : " (" + joined(names) + ")";
    const std::string of_program = is_operand ? ". To choose an argument of the program, write 'argument: " + row.which + "'" : "";
    const std::string all = "Use " + joined(roles) + " or the " + field + " name of an operator" + known + of_program;
    throw UserError(unknown_name(row.location, field, row.which, suggestion(row.which, words, all)));
}

bool takes_floats(const OperandSpec &operand) {
    const OperandClass kind = operand.operand_class;
    return kind == OperandClass::floating || kind == OperandClass::number || kind == OperandClass::any || kind == OperandClass::every;
}

/// True if the result has the shape of the first operand.
bool keeps_shape(const Rule &rule) {
    const Expression &shape = rule.results[0].shape;
    return shape == nullptr || to_string(shape) == "shape(" + rule.operands[0].name + ")";
}

/// Why an operator does not take one float array and return one of the same shape; empty if it does. `most_operands`: what it may take.
std::string why_not_in_place(const Rule &rule, size_t most_operands) {
    if (rule.operands.empty()) return "it takes no operand";
    if (rule.operands[0].variadic) return "it takes several arrays as one operand";
    if (rule.operands.size() > most_operands) return "it takes " + std::to_string(rule.operands.size()) + " operands";
    if (rule.results.size() != 1) return "it has " + std::to_string(rule.results.size()) + " results";
    return rule.results[0].each || !keeps_shape(rule) ? "its result has another shape" : "";
}

[[noreturn]] void refuse_operator(const Location &where, const std::string &verb, const std::string &op, const std::string &reason,
                                  const std::string &way_out) {
    throw UserError(statement(where, "'" + op + "' cannot " + verb + ": " + reason, way_out));
}

const PolicyState &known_state(const Policy &policy, const std::string &name, const Location &where) {
    if (const PolicyState *state = policy.find_state(name)) return *state;
    std::vector<std::string> names;
    for (const PolicyState &each : policy.state) names.push_back(each.name);
    throw UserError(unknown_name(where, "state", name, names.empty() ? "The policy has no states" : suggestion(name, names)));
}

/// Returns the attributes of an insertion without the name of a state. The state is passed as an operand instead.
Attributes without_state(const Policy &policy, const Rule &rule, const Insertion &insertion, const Location &where) {
    Attributes attributes = insertion.attributes;
    const std::optional<std::string> state = state_of(rule, insertion);
    if (!state) return attributes;
    if (*state != calibration_word) known_state(policy, *state, where);
    attributes.erase(rule.operands[1].name);
    return attributes;
}

/// Checks the attributes of delayed_scale that `scale: {by: calibration}` sets.
void check_calibrated(const PolicyRule &row, const Rulebook &rulebook) {
    if (row.calibrated.empty()) return;
    const Rule &rule = rulebook.rule(calibrated_scale, row.location);
    Attributes attributes = row.calibrated;
    add_stored_dtype(rule, row.stored_dtype(), attributes);
    complete_attributes(rule, {}, attributes, row.location);
}

void check_insertion(const Policy &policy, const PolicyRule &row, const Insertion &insertion, const Rulebook &rulebook) {
    const Location &where = row.location;
    const Rule &rule = rulebook.rule(insertion.op, where);
    const bool takes_previous = rule.operands.size() == 2 && takes_floats(rule.operands[1]);
    std::string reason = why_not_in_place(rule, takes_previous || takes_key(rule) ? 2 : 1);
    if (reason.empty() && !takes_floats(rule.operands[0])) reason = "its operand is not a float array";
    if (!reason.empty())
        refuse_operator(where, "be inserted", rule.op, reason,
                        "An inserted operator takes one float array and returns one of the same shape");
    Attributes attributes = without_state(policy, rule, insertion, where);
    add_stored_dtype(rule, row.stored_dtype(), attributes);
    complete_attributes(rule, {}, attributes, where);
}

/// Checks an operand of the operator that computes the next value of `state`.
void check_next_operand(const PolicyState &state, const Rule &rule, const std::string &operand, const PolicyState *other) {
    const std::string which = "operand '" + operand + "' of '" + rule.op + "'";
    if (other == nullptr && state.per == PolicyState::Per::program)
        throw UserError(
            statement(state.location, which + " must be a state",
                      "Name one, {" + rule.op + ": {" + operand + ": its name}}, or write 'per: tensor' to give it the tensor"));
    if (other == nullptr) return;
    if (other >= &state)
        throw UserError(statement(state.location, which + " must be a state that is declared above, got '" + other->name + "'", ""));
    const bool of_tensor = other->per == PolicyState::Per::tensor;
    if (other->per > state.per)
        throw UserError(statement(state.location,
                                  which + " cannot be '" + other->name + "', which each " + (of_tensor ? "tensor" : "scope") + " has",
                                  std::string("Write 'per: ") + (of_tensor ? "tensor'" : "scope'")));
}

void check_state(const Policy &policy, const PolicyState &state, const Rulebook &rulebook) {
    const Rule &rule = rulebook.rule(state.next.op, state.location);
    if (const std::string reason = why_not_in_place(rule, rule.operands.size()); !reason.empty())
        refuse_operator(state.location, "update a state", rule.op, reason,
                        "'next' must return one array of the shape of its first operand");
    NextState next =
        next_state(policy, state, rule, state.per != PolicyState::Per::program ? std::optional(Dtype::f8_e4m3fn) : std::nullopt);
    for (size_t i = 0; i < next.others.size(); i++) check_next_operand(state, rule, rule.operands[i + 1].name, next.others[i]);
    complete_attributes(rule, {}, next.attributes, state.location);
}

/// True if a rule or another state of the policy names the state.
bool is_named(const Policy &policy, const PolicyState &state, const Rulebook &rulebook) {
    const bool in_rules = std::ranges::any_of(policy.rules, [&](const PolicyRule &row) {
        return std::ranges::any_of(row.insert, [&](const Insertion &insertion) {
            return state_of(rulebook.rule(insertion.op, row.location), insertion) == state.name;
        });
    });
    return in_rules || std::ranges::any_of(policy.state, [&](const PolicyState &other) {
               const NextState next = next_state(policy, other, rulebook.rule(other.next.op, other.location), std::nullopt);
               return std::ranges::count(next.others, &state) > 0;
           });
}

/// A state that nothing reads is a misspelled name, for example of a state that an extended policy has.
void check_uses(const Policy &policy, const Rulebook &rulebook) {
    for (const PolicyState &state : policy.state) {
        if (state.inherited || is_named(policy, state, rulebook)) continue;
        std::vector<std::string> others;
        for (const PolicyState &other : policy.state)
            if (other.inherited) others.push_back(other.name);
        const std::string replaced = others.empty() ? "" : "To replace a state of the extended policy, use its name: " + joined(others);
        throw UserError(statement(state.location, "no rule and no other state uses the state '" + state.name + "'", replaced));
    }
}

std::string text_of(const Expression &expression) { return expression == nullptr ? "" : to_string(expression); }

bool same_result(const ResultSpec &a, const ResultSpec &b) {
    return a.name == b.name && a.like == b.like && a.each == b.each && text_of(a.dtype) == text_of(b.dtype) &&
           text_of(a.shape) == text_of(b.shape);
}

bool can_take(const OperandSpec &b, const OperandSpec &a) {
    return a.name == b.name && a.variadic == b.variadic && (a.operand_class == b.operand_class || (takes_floats(a) && takes_floats(b)));
}

std::string names_in(const std::vector<OperandSpec> &operands) {
    std::vector<std::string> names;
    for (const OperandSpec &operand : operands) names.push_back(operand.name);
    return joined(names);
}

/// Why `rule` cannot replace `replaced`; empty if it can. Operands, results and the types of the attributes must agree.
std::string why_not_replacing(const Rule &rule, const Rule &replaced) {
    if (!std::ranges::equal(rule.operands, replaced.operands, can_take)) return "it has other operands (" + names_in(rule.operands) + ")";
    if (!std::ranges::equal(rule.results, replaced.results, same_result)) return "it has other results";
    const bool has_attributes = std::ranges::all_of(replaced.attributes, [&](const AttributeSpec &spec) {
        const AttributeSpec *own = find_attribute(rule, spec.name);
        return own == nullptr ? spec.optional : own->type == spec.type;
    });
    return has_attributes ? "" : "its attributes have other names or types";
}

/// Checks a replacement. It keeps the attributes of the replaced operator; the policy rule sets the others.
void check_replacement(const PolicyRule &row, const Rulebook &rulebook) {
    const Rule &rule = rulebook.rule(row.replacement->op, row.location);
    for (const Rule *replaced : chosen(row, rulebook)) {
        if (const std::string reason = why_not_replacing(rule, *replaced); !reason.empty())
            refuse_operator(row.location, "replace '" + replaced->op + "'", rule.op, reason, "");
        Rule own = rule;
        std::erase_if(own.attributes, [&](const AttributeSpec &spec) { return find_attribute(*replaced, spec.name) != nullptr; });
        Attributes attributes = row.replacement->attributes;
        complete_attributes(own, {}, attributes, row.location);
    }
}

} // namespace

std::optional<std::string> state_of(const Rule &rule, const Insertion &insertion) {
    if (rule.operands.size() != 2) return {};
    const auto found = insertion.attributes.find(rule.operands[1].name);
    return found == insertion.attributes.end() ? std::nullopt : std::optional(to_string(found->second));
}

void add_stored_dtype(const Rule &rule, std::optional<Dtype> stored, Attributes &attributes) {
    if (stored && find_attribute(rule, "dtype")) attributes.try_emplace("dtype", std::string(to_string(*stored)));
}

NextState next_state(const Policy &policy, const PolicyState &state, const Rule &rule, std::optional<Dtype> stored) {
    NextState next{{}, state.next.attributes};
    for (size_t i = 1; i < rule.operands.size(); i++) {
        const auto found = next.attributes.find(rule.operands[i].name);
        const bool is_named = found != next.attributes.end();
        next.others.push_back(is_named ? &known_state(policy, to_string(found->second), state.location) : nullptr);
        if (is_named) next.attributes.erase(rule.operands[i].name);
    }
    add_stored_dtype(rule, stored, next.attributes);
    return next;
}

void check_policy(const Policy &policy, const Rulebook &rulebook) {
    for (const PolicyState &state : policy.state) check_state(policy, state, rulebook);
    for (const PolicyRule &row : policy.rules) {
        check_which(row, rulebook);
        for (const Insertion &insertion : row.insert) check_insertion(policy, row, insertion, rulebook);
        check_calibrated(row, rulebook);
        if (row.replacement) check_replacement(row, rulebook);
    }
    check_uses(policy, rulebook);
}

} // namespace scalide

#include "transforms/numerics/policy_match.h"
#include "rulebook/check_policy.h"
#include "transforms/numerics/model_values.h"
#include "transforms/numerics/policy_misses.h"
#include <algorithm>

namespace scalide {

namespace {

using Place = PolicyRule::Place;

bool is_separator(char letter) { return letter == '/' || letter == '.'; }

/// The positions in a name at which the part of the glob that was read so far may end: one flag for each position.
class GlobEnds {
public:
    explicit GlobEnds(std::string_view name) : name_(name), ends_(name.size() + 1) { ends_[0] = true; }

    void letter(char letter) {
        std::vector<bool> ends(ends_.size());
        for (size_t i = 0; i < name_.size(); i++) ends[i + 1] = ends_[i] && name_[i] == letter;
        ends_ = std::move(ends);
    }
    void any_letters(bool separators) {
        for (size_t i = 0; i < name_.size(); i++)
            if (ends_[i] && (separators || !is_separator(name_[i]))) ends_[i + 1] = true;
    }
    /// Matches zero or more segments, each with its separator.
    void any_segments() {
        bool begun = false;
        for (size_t i = 0; i < name_.size(); i++) {
            begun = begun || ends_[i];
            if (begun && is_separator(name_[i])) ends_[i + 1] = true;
        }
    }
    bool at_end() const { return ends_.back(); }
    bool at_end_or_separator(char separator) const {
        for (size_t i = 0; i < name_.size(); i++)
            if (ends_[i] && name_[i] == separator) return true;
        return at_end();
    }

private:
    std::string_view name_;
    std::vector<bool> ends_;
};

} // namespace

bool glob_matches(std::string_view glob, std::string_view name) {
    if (glob.empty()) return true;
    GlobEnds ends(name);
    for (size_t i = 0; i < glob.size(); i++) {
        const std::string_view rest = glob.substr(i);
        const bool at_segment = i == 0 || is_separator(glob[i - 1]);
        if (rest.size() == 3 && is_separator(rest[0]) && rest.ends_with("**")) return ends.at_end_or_separator(rest[0]);
        const bool deep = rest.starts_with("**");
        const bool segments = deep && at_segment && rest.size() > 2 && is_separator(rest[2]);
        if (segments) {
            ends.any_segments();
        } else if (rest[0] == '*') {
            ends.any_letters(deep);
        } else {
            ends.letter(rest[0]);
        }
        i += segments ? 2 : deep;
    }
    return ends.at_end();
}

size_t matched_depth(std::string_view glob, std::string_view scope) {
    if (glob.empty()) return 0;
    size_t depth = 1;
    for (size_t end = scope.find('/'); end != std::string_view::npos; end = scope.find('/', end + 1), depth++)
        if (glob_matches(glob, scope.substr(0, end))) return depth;
    return depth;
}

PolicyMatcher::PolicyMatcher(const Policy &policy, const Rulebook &rulebook, const Program &program)
    : policy_(policy), rulebook_(rulebook), program_(program), roles_(program, rulebook), layers_(program, roles_),
      producers_(producers(program)), optimizer_states_(optimizer_states(program, roles_)), of_model_(model_values(program)),
      counts_(policy.rules.size()) {
    check_policy(policy, rulebook);
}

/// Adds the facts about the array of a site. A matmul has its own arrays.
PolicyPlace PolicyMatcher::with_array(PolicyPlace place, ValueId value) const {
    const auto &[dtype, shape] = program_.type(value);
    if (place.tensor.empty()) place.tensor = program_.value_name(value);
    if (place.dtypes.empty()) place.dtypes = {dtype};
    if (place.layer.arrays.empty()) place.layer.arrays = {shape};
    return place;
}

const PolicyRule *PolicyMatcher::first_match(const PolicyPlace &place) const {
    const auto found = std::ranges::find_if(policy_.rules, [&](const PolicyRule &row) { return row_matches(row, place); });
    return found == policy_.rules.end() ? nullptr : &*found;
}

/// Returns the place of the rule that decides among rules that match, in the order of the policy.
size_t PolicyMatcher::deciding(const std::vector<size_t> &matching, const PolicyPlace &place) const {
    const auto rule = [&](size_t i) -> const PolicyRule & { return policy_.rules[i]; };
    if (!rule(matching[0]).compute) return matching[0];
    size_t best = matching[0];
    const auto depth = [&](size_t i) { return rule(i).scope.empty() ? SIZE_MAX : matched_depth(rule(i).scope, place.scope); };
    for (const size_t i : matching)
        if (rule(i).compute && depth(i) < depth(best)) best = i;
    return best;
}

const PolicyRule *PolicyMatcher::decide(PolicyPlace place, ValueId value) {
    if (!is_float(program_.type(value).dtype)) return nullptr;
    place = with_array(std::move(place), value);
    std::vector<size_t> matching;
    bool is_asked_about = false;
    for (size_t i = 0; i < policy_.rules.size(); i++) {
        const PolicyRule &row = policy_.rules[i];
        is_asked_about |= row.place == place.place || row.place == Place::keep;
        if (row_matches(row, place)) matching.push_back(i);
    }
    const std::optional<size_t> first = matching.empty() ? std::nullopt : std::optional(deciding(matching, place));
    for (const size_t i : matching) {
        counts_[i].matched++;
        counts_[i].decided += i == *first;
        if (i != *first) counts_[i].before.insert(policy_.rules[*first].location.line);
    }
    if (is_asked_about) places_.push_back(std::move(place));
    return first ? &policy_.rules[*first] : nullptr;
}

const PolicyRule *PolicyMatcher::argument(const Argument &argument) {
    PolicyPlace place{Place::argument, {"input"}, program_.value_name(argument.value)};
    if (argument.inout) place.roles = {"inout", "state"};
    if (roles_.is_weight(argument.value)) place.roles.push_back("weight");
    if (optimizer_states_.contains(argument.value)) place.roles.push_back("optimizer_state");
    return decide(std::move(place), argument.value);
}

/// An operand is a cotangent if the node that computes its elements belongs to a gradient. A gradient also moves and converts primal
/// values, such as the kernel of a convolution, which it reverses; they stay primal.
std::vector<std::string> PolicyMatcher::roles_of(ValueId operand) const {
    const ValueId computed = roles_.root(operand);
    if (producers_[computed] >= 0 && program_.nodes[producers_[computed]].role == Role::cotangent) return {"cotangent"};
    return {"primal", roles_.is_weight(operand) ? "weight" : "activation"};
}

PolicyPlace PolicyMatcher::of_node(const Node &node, Place place) const {
    PolicyPlace made{place, {}, "", node.op, node.scope};
    if (const LayerFacts *facts = layers_.find(node)) made.layer = *facts;
    for (const ValueId argument : roles_.multiplied(node)) made.arguments.push_back(program_.value_name(argument));
    made.is_update = !of_model_.contains(node.results[0]);
    return made;
}

PolicyPlace PolicyMatcher::of_operand(const Node &node, size_t index) const {
    const ValueId value = node.operands[index];
    const Rule &rule = rulebook_.rule(node.op, node.location);
    PolicyPlace place = of_node(node, Place::operand);
    place.roles = roles_of(value);
    place.name = rule.operands[std::min(index, rule.operands.size() - 1)].name;
    for (const ValueId operand : node.operands) place.operands.push_back(roles_of(operand));
    return with_array(std::move(place), value);
}

const PolicyRule *PolicyMatcher::operand(const Node &node, size_t index) { return decide(of_operand(node, index), node.operands[index]); }

PolicyPlace PolicyMatcher::of_operands(const Node &node) const {
    PolicyPlace place = of_node(node, Place::node);
    for (const ValueId operand : node.operands) {
        place.operands.push_back(roles_of(operand));
        if (is_float(program_.type(operand).dtype)) place.dtypes.push_back(program_.type(operand).dtype);
    }
    for (const std::vector<std::string> &roles : place.operands) place.name += (place.name.empty() ? "" : " x ") + roles.back();
    return with_array(std::move(place), node.results[0]);
}

const PolicyRule *PolicyMatcher::node(const Node &node) { return decide(of_operands(node), node.results[0]); }

const PolicyRule *PolicyMatcher::node_result(const Node &node, size_t index) {
    PolicyPlace place = of_node(node, Place::node_result);
    place.name = rulebook_.rule(node.op, node.location).result(index).name;
    return decide(std::move(place), node.results[index]);
}

bool PolicyMatcher::keeps(const Node &node) const {
    const PolicyPlace place = of_node(node, Place::node);
    if (std::ranges::any_of(policy_.rules, [&](const PolicyRule &row) { return row.place == Place::keep && row_matches(row, place); }))
        return true;
    std::vector<const PolicyRule *> rows;
    for (size_t i = 0; i < node.operands.size(); i++)
        if (const PolicyRule *row = first_match(of_operand(node, i))) rows.push_back(row);
    if (const PolicyRule *row = rows.empty() ? first_match(of_operands(node)) : nullptr) rows.push_back(row);
    return !std::ranges::all_of(rows, &PolicyRule::acts);
}

std::string PolicyMatcher::why_no_rule(const Node &node, size_t index) const {
    for (const PolicyPlace &place : {of_operand(node, index), of_operands(node)})
        for (const PolicyRule &row : policy_.rules)
            if (const std::string missing = missing_condition(row, place); row.acts() && !missing.empty())
                return "no rule matches, the nearest needs " + missing;
    return "no rule matches";
}

const PolicyRule *PolicyMatcher::program_result(const Result &result) {
    PolicyPlace place{Place::program_result, {"output"}, result.name};
    place.tensor = result.name; // as its inout argument, so that one rule decides for both
    const bool inout = result.argument >= 0;
    if (inout) place.roles = {"inout", "state"};
    if (inout && roles_.is_weight(program_.arguments[result.argument].value)) place.roles.push_back("weight");
    if (inout && optimizer_states_.contains(program_.arguments[result.argument].value)) place.roles.push_back("optimizer_state");
    return decide(std::move(place), result.value);
}

void PolicyMatcher::check() const {
    for (size_t i = 0; i < policy_.rules.size(); i++) {
        const PolicyRule &row = policy_.rules[i];
        const Count &count = counts_[i];
        if (row.optional || count.decided > 0) continue;
        if (count.matched == 0) throw UserError(describe_miss(row, places_, program_.name));
        if (!row.inherited) throw UserError(describe_hidden(row, count.before));
    }
}

} // namespace scalide

#include "tool/bisect_policy.h"
#include "rulebook/nearest.h"
#include "tool/tables.h"
#include "transforms/numerics/policy_match.h"
#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <nlohmann/json.hpp>

namespace scalide {

namespace {

using BisectKind = BisectCandidate::Kind;

constexpr std::array kind_words = {"scope", "rule", "tensor"};

/// Returns the numbers of a result: data * scale. nullopt: the program has no such float result.
std::optional<std::vector<double>> result_numbers(const Program &program, const std::vector<Array> &outputs, const std::string &name) {
    for (size_t i = 0; i < program.results.size(); i++) {
        const Result &result = program.results[i];
        if (result.part.array(result.name) != name || result.part.is_scale() || !is_float(outputs[i].dtype)) continue;
        std::vector<double> numbers = outputs[i].data;
        if (result.part.kind == ArrayPart::Kind::data)
            for (double &number : numbers) number *= outputs[i + 1].data[0];
        return numbers;
    }
    return {};
}

double norm_of(const std::vector<double> &numbers) {
    double sum = 0;
    for (const double number : numbers) sum += number * number;
    return std::sqrt(sum);
}

/// Returns the number of a scalar, or the norm of an array.
double value_of_result(const std::vector<double> &numbers) { return numbers.size() == 1 ? numbers[0] : norm_of(numbers); }

double distance_of(const std::vector<double> &a, const std::vector<double> &b) {
    double sum = 0;
    for (size_t i = 0; i < a.size(); i++)
        if (a[i] != b[i]) sum += (a[i] - b[i]) * (a[i] - b[i]);
    return std::isnan(sum) ? std::numeric_limits<double>::infinity() : std::sqrt(sum);
}

/// Returns the policy in which rules may match nothing: a scope, rule or tensor that stays wide may take all sites of another rule.
Policy lenient(Policy policy) {
    for (PolicyRule &rule : policy.rules) rule.optional = rule.inherited = true;
    return policy;
}

PolicyRule keeping(const std::string &scope, const std::string &tensor) {
    PolicyRule rule{};
    rule.place = PolicyRule::Place::keep;
    rule.which = scope;
    rule.tensor = tensor;
    rule.optional = true;
    return rule;
}

Policy keeping_first(const Policy &policy, const std::string &scope, const std::string &tensor) {
    Policy made = lenient(policy);
    made.rules.insert(made.rules.begin(), keeping(scope, tensor));
    return made;
}

class Bisector {
public:
    Bisector(const PolicyInputs &inputs, const PolicyRun &reference, const PolicyRun &tested, const Policy &policy,
             const std::string &result)
        : inputs_(inputs), tested_(tested), policy_(policy) {
        found_.result = result.empty() ? first_scalar() : result;
        const auto numbers = result_numbers(reference.stored().program, reference.outputs(), found_.result);
        const auto own = result_numbers(tested.stored().program, tested.outputs(), found_.result);
        if (!numbers || !own) refuse_name();
        reference_ = *numbers;
        found_.reference = value_of_result(reference_);
        found_.tested = value_of_result(*own);
        found_.distance = distance_of(reference_, *own);
        if (found_.distance == 0) refuse_equal(reference);
    }

    Bisection run() {
        std::string worst = "";
        while (const std::optional<std::string> inner = try_scopes(worst)) worst = *inner;
        try_rules();
        try_tensors(worst);
        std::ranges::stable_sort(found_.candidates, [](const BisectCandidate &a, const BisectCandidate &b) {
            return std::tuple(a.kind, !a.failure.empty(), a.distance) < std::tuple(b.kind, !b.failure.empty(), b.distance);
        });
        return std::move(found_);
    }

private:
    std::string first_scalar() const {
        const Program &program = tested_.stored().program;
        for (const Result &result : program.results)
            if (result.argument < 0 && result.part == ArrayPart() && program.type(result.value).is_scalar() &&
                is_float(program.type(result.value).dtype))
                return result.name;
        throw UserError(statement({}, "--bisect needs the name of a result, because the program has no scalar float result",
                                  "Results: " + joined(result_names())));
    }

    std::vector<std::string> result_names() const {
        std::vector<std::string> names;
        for (const Result &result : tested_.stored().program.results)
            if (!result.part.is_scale()) names.push_back(result.part.array(result.name));
        return names;
    }

    [[noreturn]] void refuse_name() const {
        throw UserError(unknown_name({}, "result", found_.result,
                                     suggestion(found_.result, result_names(), "Float results: " + joined(result_names()))));
    }

    [[noreturn]] void refuse_equal(const PolicyRun &reference) const {
        std::vector<std::string> others;
        for (const std::string &name : result_names()) {
            const auto a = result_numbers(reference.stored().program, reference.outputs(), name);
            const auto b = result_numbers(tested_.stored().program, tested_.outputs(), name);
            if (a && b && distance_of(*a, *b) > 0) others.push_back(name);
        }
        throw UserError(failed_action("bisect result '" + found_.result + "'", "it is equal under both policies",
                                      others.empty() ? "All results are equal" : "Results that differ: " + joined(others)));
    }

    /// Runs the program under one policy. The numbers are those of a real run.
    const BisectCandidate &try_policy(BisectCandidate candidate, const Policy &policy) {
        try {
            const StoredProgram made = stored_program(inputs_, policy);
            const std::vector<Array> outputs = interpret(made.program, inputs_.for_program(made.program), inputs_.rulebook, Mode::stored);
            const std::vector<double> numbers = *result_numbers(made.program, outputs, found_.result);
            candidate.distance = distance_of(reference_, numbers);
            candidate.result = value_of_result(numbers);
            found_.runs++;
        } catch (const UserError &error) { // such as a rule for a result without the rule for its argument
            candidate.failure = error.what();
        }
        return found_.candidates.emplace_back(std::move(candidate));
    }

    /// Tries the scopes directly inside of a scope. Returns the one that explains most, or nothing if there is none inside.
    std::optional<std::string> try_scopes(const std::string &outer) {
        std::set<std::string> scopes;
        for (const Node &node : tested_.stored().source.nodes) {
            const bool is_inside = outer.empty() ? !node.scope.empty() : node.scope.starts_with(outer + "/");
            if (is_inside) scopes.insert(node.scope.substr(0, node.scope.find('/', outer.empty() ? 0 : outer.size() + 1)));
        }
        std::optional<std::string> best;
        double least = found_.distance; // a scope that explains nothing contains nothing that does
        for (const std::string &scope : scopes) {
            const BisectCandidate &tried = try_policy({BisectKind::scope, scope}, keeping_first(policy_, scope + "/**", ""));
            if (tried.failure.empty() && tried.distance < least) best = scope, least = tried.distance;
        }
        return best;
    }

    void try_rules() {
        for (size_t i = 0; i < policy_.rules.size(); i++) {
            if (!policy_.rules[i].acts()) continue;
            Policy made = lenient(policy_);
            PolicyRule &rule = made.rules[i];
            const std::string conditions = conditions_of(rule);
            rule.insert.clear();
            // The matmuls of a rule that replaces them must not go to later rules for their operands.
            if (rule.replacement) rule.place = PolicyRule::Place::keep, rule.which = "**";
            rule.store = {}, rule.scaled = {}, rule.replacement = {}, rule.compute = {};
            const std::string ops = rule.ops.empty() ? "" : "op: " + joined(rule.ops) + (conditions.empty() ? "" : ", ");
            try_policy({BisectKind::rule, ops + conditions, rule.location}, made);
        }
        if (!policy_.intermediates) return;
        Policy made = lenient(policy_);
        made.intermediates = {};
        try_policy({BisectKind::rule, "intermediates: " + std::string(to_string(*policy_.intermediates))}, made);
    }

    /// Tries the tensors of the user's program for which a rule of the policy decides in a scope. A rule that replaces matmuls decides for
    /// all operands at once, so that no operand stays wide alone.
    void try_tensors(const std::string &scope) {
        std::set<std::string> open;
        const ValueGraph source(tested_.stored().source);
        for (const Program *program : source.programs())
            for (const Value &value : program->values) open.insert(value.name);
        for (const NumericsDecision &site : tested_.stored().sites) {
            const bool is_inside = scope.empty() || site.scope == scope || site.scope.starts_with(scope + "/");
            const bool is_one = site.is_policys() && site.place != PolicyRule::Place::node;
            if (is_one && is_inside && open.erase(site.tensor) > 0)
                try_policy({BisectKind::tensor, site.tensor}, keeping_first(policy_, "**", site.tensor));
        }
    }

    const PolicyInputs &inputs_;
    const PolicyRun &tested_;
    const Policy &policy_;
    std::vector<double> reference_; ///< the result under the reference
    Bisection found_;
};

std::string share_text(double share) { return std::isfinite(share) ? fmt::format("{:.1f} %", 100 * share) : "-"; }

} // namespace

Bisection bisect(const PolicyInputs &inputs, const PolicyRun &reference, const PolicyRun &tested, const Policy &policy,
                 const std::string &result) {
    return Bisector(inputs, reference, tested, policy, result).run();
}

std::string to_text(const Bisection &bisection) {
    std::vector<std::vector<std::string>> rows{{"kept wide", "", bisection.result, "error", "explains"}};
    std::string failures;
    for (const BisectCandidate &each : bisection.candidates) {
        const std::string kind = kind_words[static_cast<size_t>(each.kind)];
        const std::string rule = each.rule.line == 0 ? "" : short_place(each.rule, "") + (each.name.empty() ? "" : "  " + each.name);
        const std::string name = rule.empty() ? each.name : rule;
        if (each.failure.empty()) {
            rows.push_back(
                {kind, name, fmt::format("{:.7g}", each.result), fmt::format("{:.3g}", each.distance), share_text(bisection.share(each))});
        } else {
            failures += fmt::format("not run with {} {} kept wide: {}\n", kind, name, each.failure);
        }
    }
    return fmt::format("\nbisection of {}: {:.7g} under the first policy, {:.7g} under the second, error {:.3g}; {} runs\n",
                       bisection.result, bisection.reference, bisection.tested, bisection.distance, bisection.runs) +
           in_columns(rows) + failures;
}

std::string to_json(const Bisection &bisection) {
    using Json = nlohmann::ordered_json;
    const auto number = [](double each) { return std::isfinite(each) ? Json(each) : Json(fmt::format("{}", each)); };
    Json candidates = Json::array();
    for (const BisectCandidate &each : bisection.candidates) {
        const bool has_run = each.failure.empty();
        const double share = bisection.share(each);
        candidates.push_back({{"kind", kind_words[static_cast<size_t>(each.kind)]},
                              {"name", each.name},
                              {"rule", place_json(each.rule)},
                              {"result", has_run ? number(each.result) : Json(nullptr)},
                              {"error", has_run ? number(each.distance) : Json(nullptr)},
                              {"share", has_run && std::isfinite(share) ? Json(share) : Json(nullptr)},
                              {"failure", has_run ? Json(nullptr) : Json(each.failure)}});
    }
    return Json{{"result", bisection.result},
                {"reference", number(bisection.reference)},
                {"tested", number(bisection.tested)},
                {"error", number(bisection.distance)},
                {"runs", bisection.runs},
                {"candidates", candidates}}
        .dump(2, ' ', false, Json::error_handler_t::replace);
}

} // namespace scalide

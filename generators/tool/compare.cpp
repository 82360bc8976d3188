#include "rulebook/nearest.h"
#include "tool/bisect_policy.h"
#include "tool/common.h"
#include "transforms/numerics/policy_match.h"
#include <algorithm>
#include <fmt/core.h>
#include <nlohmann/json.hpp>

namespace scalide {

namespace {

struct CompareCommand {
    ProgramOptions program;
    std::vector<std::string> numerics;
    std::string inputs, tensor, scope;
    std::optional<double> limit;
    bool bisects = false, json = false;
    std::string bisected; ///< a result; empty: the first scalar

    void run() const {
        check();
        const Policy first = program.load_numerics(numerics[0]), second = program.load_numerics(numerics[1]);
        const Rulebook rulebook = program.load_rulebook();
        const Program loaded = program.load_program(rulebook);
        const ArrayFile arrays(inputs);
        const PolicyInputs given{loaded, rulebook, arrays};
        PolicyRun reference(given, first), tested(given, second);
        const Comparison comparison = compared(given, reference, tested);
        const bool is_equal = std::ranges::all_of(comparison.rows, [](const ComparedTensor &row) { return row.difference.is_equal; });
        const std::vector<bool> is_shown = shown(comparison);
        std::optional<Bisection> bisection;
        if (bisects) bisection = bisect(given, reference, tested, second, bisected);
        if (json) return print_as_json(comparison, is_shown, bisection);
        fmt::print("{}", is_equal ? "both policies give the same bits in all tensors\n" : to_text(comparison, is_shown, numerics));
        if (bisection) fmt::print("{}", to_text(*bisection));
    }

private:
    void check() const {
        if (numerics.size() != 2)
            throw UserError({{},
                             "--numerics",
                             "must be given twice, for the reference and for the policy under test",
                             fmt::format("{} of them", numerics.size()),
                             "Example: -n f32 -n f8_master"});
        if (numerics[0] == numerics[1])
            throw UserError({{}, "--numerics", "must be two different policies", "'" + numerics[0] + "' twice", ""});
    }

    /// Names tensors by a run on random numbers, in exact arithmetic, of the program that the user wrote.
    Comparison compared(const PolicyInputs &given, PolicyRun &reference, PolicyRun &tested) const {
        const Program &source = tested.stored().source;
        const ValueGraph graph(source);
        const std::vector<Array> exact_inputs = distinct_inputs(source, given.for_program(source));
        std::map<std::string, Array> by_name;
        for (size_t i = 0; i < exact_inputs.size(); i++) by_name[source.value_name(source.arguments[i].value)] = exact_inputs[i];
        const SourceTensors tensors(graph, RecordedRun(graph, exact_inputs, given.rulebook, RecordedNumbers::exact));
        reference.find_forms(tensors, by_name, given.rulebook);
        tested.find_forms(tensors, by_name, given.rulebook);
        return compare_runs(reference, tested, tensors, limit);
    }

    /// A tensor is shown if its name and its scope match. Throws UserError if none does.
    std::vector<bool> shown(const Comparison &comparison) const {
        std::vector<std::string> names, scopes;
        std::vector<bool> is_shown;
        for (const ComparedTensor &row : comparison.rows) {
            const SourceTensor &each = comparison.tensors[row.tensor];
            const auto fits = [&](const std::string &name) { return glob_matches(tensor, name); };
            is_shown.push_back((fits(each.shown()) || fits(each.result) || std::ranges::any_of(each.names, fits)) &&
                               glob_matches(scope, row.scope));
            names.insert(names.end(), each.names.begin(), each.names.end());
            names.push_back(each.shown());
            if (!row.scope.empty() && !std::ranges::count(scopes, row.scope)) scopes.push_back(row.scope);
        }
        if (std::ranges::count(is_shown, true) > 0 || is_shown.empty()) return is_shown;
        const auto matches = [](const std::string &glob, const std::vector<std::string> &all) {
            return std::ranges::any_of(all, [&](const std::string &name) { return glob_matches(glob, name); });
        };
        if (!scope.empty() && !matches(scope, scopes)) throw UserError(unknown_name({}, "scope", scope, suggestion(scope, scopes)));
        if (!matches(tensor, names)) throw UserError(unknown_name({}, "tensor", tensor, suggestion(tensor, names)));
        throw UserError(failed_action("compare tensor '" + tensor + "' in scope '" + scope + "'", "no tensor of this name is in this scope",
                                      "Leave out --tensor or --scope"));
    }

    void print_as_json(const Comparison &comparison, const std::vector<bool> &is_shown, const std::optional<Bisection> &bisection) const {
        using Json = nlohmann::ordered_json;
        Json made = Json::parse(to_json(comparison, is_shown, numerics));
        made["bisection"] = bisection ? Json::parse(to_json(*bisection)) : Json(nullptr);
        fmt::print("{}\n", made.dump(2));
    }
};

} // namespace

void add_compare(CLI::App &app) {
    const auto command = std::make_shared<CompareCommand>();
    CLI::App *compare =
        app.add_subcommand("compare", "Print the error of each tensor of a program between two precision policies on the same arrays.");
    command->program.add_program_to(*compare)->required();
    compare
        ->add_option("-n,--numerics", command->numerics,
                     "Precision policy: a built-in name ('scalide policies' lists them) or a YAML file. Give it twice: the reference, and "
                     "the policy under test.")
        ->required()
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    compare
        ->add_option("-i,--inputs", command->inputs,
                     "Safetensors file with the arguments. It may have other float formats than the policies, and a state of a policy "
                     "that it does not have starts with its initial value.")
        ->required();
    compare
        ->add_option("--limit", command->limit,
                     "Relative error beyond which the first tensor is marked. Default: four times the unit roundoff of the coarsest format "
                     "on the way to the tensor: 0.25 for f8_e4m3fn, 0.5 for f8_e5m2, 0.0156 for bf16, 0.00195 for f16, 0.00001 for f32.")
        ->check(CLI::PositiveNumber);
    compare->add_option("--tensor", command->tensor, "Print only tensors whose name matches this glob.");
    compare->add_option("--scope", command->scope, "Print only tensors whose scope matches this glob, such as 'block1/**'.");
    const auto bisect = [command](const std::string &name) { command->bisects = true, command->bisected = name; };
    compare
        ->add_option_function<std::string>(
            "--bisect", bisect,
            "Run the program again with one scope, one rule or one tensor kept wide, and print how much of the error of a result each "
            "explains. Default: the first scalar float result.")
        ->expected(0, 1)
        ->type_name("RESULT");
    compare->add_flag("--json", command->json, "Print a JSON object, with all tensors and full paths.");
    compare->callback([command] { command->run(); });
}

} // namespace scalide

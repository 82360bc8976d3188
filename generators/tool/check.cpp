#include "interpret/laws.h"
#include "tool/common.h"
#include "transforms/analysis/passes.h"
#include <fmt/core.h>

namespace scalide {

namespace {

struct CheckCommand {
    ProgramOptions options;
    std::vector<std::string> files;
    LawOptions laws;

    // Returns every operator of the given files, or all built-in operators if no file is given.
    std::vector<const Rule *> chosen(const Rulebook &rulebook) const {
        std::vector<const Rule *> rules;
        for (const Rule *rule : rulebook.rules()) {
            const bool given = std::any_of(files.begin(), files.end(), [&](const std::string &path) {
                const auto file = std::filesystem::weakly_canonical(rule->location.file), wanted = std::filesystem::weakly_canonical(path);
                return std::mismatch(wanted.begin(), wanted.end(), file.begin(), file.end()).first == wanted.end();
            });
            if (given || files.empty()) rules.push_back(rule);
        }
        return rules;
    }

    void run() {
        options.rules.insert(options.rules.end(), files.begin(), files.end());
        const Rulebook rulebook = options.load_rulebook();
        size_t failures = 0;
        const std::vector<const Rule *> rules = chosen(rulebook);
        for (const Rule *rule : rules) {
            const LawReport report = check_laws(*rule, rulebook, {propagate_scales, append_vjp}, laws);
            if (report.failures.empty()) fmt::print("{}: {}\n", rule->op, report.ran);
            for (const Message &message : report.failures) fmt::print(stderr, "{}\n", UserError(message).what());
            failures += report.failures.size();
        }
        const std::string checked = fmt::format("{} rule{}", rules.size(), rules.size() == 1 ? "" : "s");
        if (failures)
            throw UserError(
                statement({}, fmt::format("{} check{} failed in {} (seed {})", failures, failures == 1 ? "" : "s", checked, laws.seed)));
        fmt::print("{} checked, all checks passed (seed {})\n", checked, laws.seed);
    }
};

} // namespace

void add_check(CLI::App &app) {
    const auto command = std::make_shared<CheckCommand>();
    CLI::App *check =
        app.add_subcommand("check", "Test rules on random data: does data * scale equal the value, and are gradients derivatives?");
    check->add_option("FILES", command->files, "Rule files or folders to load and test. Default: all built-in rules.");
    command->options.add_rules_to(*check);
    check->add_option("--seed", command->laws.seed, "Seed of the random data.")->capture_default_str();
    check->add_option("--draws", command->laws.draws, "Number of random draws for each case.")->capture_default_str();
    check->callback([command] { command->run(); });
}

} // namespace scalide

#include "emit/files.h"
#include "tool/common.h"
#include "tool/operators.h"
#include "tool/own_rules.h"
#include <fmt/core.h>

namespace scalide {

void add_rules(CLI::App &app) {
    struct RulesCommand {
        ProgramOptions options;
        std::string header, source, reference, coverage;
    };
    const auto command = std::make_shared<RulesCommand>();
    CLI::App *rules = app.add_subcommand("rules", "List the operators, or write their reference pages or their C++ functions.");
    command->options.add_rules_to(*rules);
    rules->add_option("--header", command->header, "Write the C++ functions of the DSL to this file.");
    rules->add_option(
        "--source", command->source,
        "Write a C++ source file with the rules of --rules and the path of --home, to link into an executable with generators.");
    rules->add_option("--reference", command->reference, "Write one Markdown page per operator and the coverage table to this folder.");
    rules->add_option("--coverage", command->coverage, "Write the coverage table (Markdown) to this file.");
    rules->callback([command] {
        const Rulebook rulebook = command->options.load_rulebook();
        if (!command->header.empty()) write_file(command->header, operators_header(rulebook));
        if (!command->source.empty()) {
            const std::filesystem::path home = find_home(command->options.home).rules.parent_path();
            write_file(command->source, own_rules_source(home, command->options.rules));
        }
        for (const auto &[name, page] : command->reference.empty() ? std::map<std::string, std::string>() : operator_pages(rulebook))
            write_file(std::filesystem::path(command->reference) / name, page);
        if (!command->coverage.empty()) write_file(command->coverage, coverage_table(rulebook));
        if (command->header.empty() && command->source.empty() && command->reference.empty() && command->coverage.empty())
            fmt::print("{}", coverage_table(rulebook));
    });
}

} // namespace scalide

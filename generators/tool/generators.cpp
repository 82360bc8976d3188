#include "frontend/generator.h"
#include "tool/common.h"
#include "tool/tables.h"
#include <fmt/core.h>

namespace scalide {

void add_generators(CLI::App &app) {
    const auto options = std::make_shared<ProgramOptions>();
    CLI::App *generators =
        app.add_subcommand("generators", "List the generators in this executable, with their parameters and default values.");
    options->add_rules_to(*generators);
    generators->callback([options] {
        const std::vector<std::string> names = generator_names();
        if (names.empty())
            throw UserError(statement({}, "this executable contains no generators", "add_scalide_generator in CMake makes one that does"));
        const Rulebook rulebook = options->load_rulebook();
        std::vector<std::vector<std::string>> rows{{"program", "parameter", "default", "values"}};
        for (const std::string &name : names) {
            const std::vector<ParameterDescription> parameters = generator_parameters(name, rulebook);
            if (parameters.empty()) rows.push_back({name, "-", "-", "-"});
            for (const auto &[parameter, type, default_value] : parameters) rows.push_back({name, parameter, default_value, type});
        }
        fmt::print("{}", in_columns(rows));
    });
}

} // namespace scalide

#include "tool/common.h"
#include <fmt/core.h>

namespace scalide {

void add_policies(CLI::App &app) {
    const auto options = std::make_shared<ProgramOptions>();
    CLI::App *policies = app.add_subcommand("policies", "List the built-in precision policies (names for --numerics and 'extends').");
    add_home(*policies, options->home);
    policies->callback([options] {
        const std::filesystem::path folder = options->policy_folder();
        for (const std::string &name : policy_names(folder))
            fmt::print("{:<12} {}\n", name, load_policy(folder / (name + ".yaml"), folder).doc);
    });
}

} // namespace scalide

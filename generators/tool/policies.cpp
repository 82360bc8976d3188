#include "tool/common.h"
#include <fmt/core.h>

namespace scalide {

void add_policies(CLI::App &app) {
    const auto options = std::make_shared<ProgramOptions>();
    CLI::App *policies = app.add_subcommand("policies", "list our numerics policies: what --numerics and extends take by name");
    policies->add_option("--home", options->home,
                         "folder share/scalide of an installation (default: beside this executable, or the one that it was built with)");
    policies->callback([options] {
        const std::filesystem::path folder = options->policy_folder();
        for (const std::string &name : policy_names(folder))
            fmt::print("{:<12} {}\n", name, load_policy(folder / (name + ".yaml"), folder).doc);
    });
}

} // namespace scalide

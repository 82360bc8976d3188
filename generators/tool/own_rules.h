#pragma once
#include "rulebook/rulebook.h"

namespace scalide {

/// What an executable of a user's generators holds: where the installation is that it was built with, and the texts of the user's rules. So
/// it needs no option to find them. add_scalide_generator compiles a source that `scalide rules --source` has written, which calls this.
/// `rules` has a file and its text for each, and ends with a null pointer.
int register_own_rules(const char *home, const char *const *rules);

/// The folder share/scalide; empty: this executable has none.
std::filesystem::path own_home();
std::vector<RuleText> own_rules();

/// The source that registers `home` and these rule files and folders.
std::string own_rules_source(const std::filesystem::path &home, const std::vector<std::string> &paths);

} // namespace scalide

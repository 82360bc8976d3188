#pragma once
#include "rulebook/rulebook.h"

namespace scalide {

/// Registers what an executable of a user's generators contains: the path of the installation that built it, and the texts of the user's
/// rules. So the executable needs no options to find them. add_scalide_generator compiles a source file that `scalide rules --source` has
/// written and that calls this function. `rules` has a file name and a text for each file, and ends with a null pointer.
int register_own_rules(const char *home, const char *const *rules);

/// Returns the folder share/scalide, or an empty path if this executable has none registered.
std::filesystem::path own_home();
std::vector<RuleText> own_rules();

/// Returns the source file that registers `home` and these rule files and folders.
std::string own_rules_source(const std::filesystem::path &home, const std::vector<std::string> &paths);

} // namespace scalide

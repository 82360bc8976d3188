#include "tool/table_filter.h"
#include "rulebook/nearest.h"
#include "transforms/numerics/policy_match.h"
#include <algorithm>
#include <fmt/core.h>

namespace scalide {

std::vector<CLI::Option *> TableFilter::add_to(CLI::App &command) {
    return {command.add_option("--tensor", tensor_, "Print only rows about tensors whose name matches this glob, such as 'params.**'."),
            command.add_option("--scope", scope_, "Print only rows of scopes that match this glob, such as 'block1/**'.")};
}

bool TableFilter::matches(const std::vector<RowSubject> &subjects, Names &names) const {
    bool found = false;
    for (const auto &[tensor, scope] : subjects) {
        names.tensors.insert(tensor);
        names.scopes.insert(scope);
        found |= glob_matches(tensor_, tensor) && (scope_.empty() || (!scope.empty() && glob_matches(scope_, scope)));
    }
    return found;
}

void TableFilter::fail(const Names &names) const {
    const auto check = [](const char *noun, const std::string &glob, const std::set<std::string> &known) {
        if (std::ranges::any_of(known, [&](const std::string &name) { return !name.empty() && glob_matches(glob, name); })) return;
        throw UserError(statement({}, fmt::format("no row of the table has a {} that matches '{}'", noun, glob),
                                  suggestion(glob, {known.begin(), known.end()}, "Run without the option to see all rows")));
    };
    check("tensor", tensor_, names.tensors);
    check("scope", scope_, names.scopes);
    throw UserError(
        statement({}, fmt::format("no row of the table has both a tensor that matches '{}' and a scope that matches '{}'", tensor_, scope_),
                  "Use one of the two filters"));
}

} // namespace scalide

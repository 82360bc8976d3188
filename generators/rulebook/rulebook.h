#pragma once
#include "rulebook/rule.h"
#include <filesystem>

namespace scalide {

/// The text of a rule file that is held elsewhere; `file` stands in diagnostics.
struct RuleText {
    std::string file, text;
};

/// The file itself, or every *.yaml below a folder but numerics policies, sorted. Throws UserError where there is none.
std::vector<std::string> rule_files(const std::filesystem::path &path);

/// All rules at hand, frozen. A program without rules means nothing: every pass that reads an operator's meaning is handed one.
class Rulebook {
public:
    /// Loads every *.yaml below the folders (and single files), sorted by path. Throws UserError at the first mistake: unknown,
    /// duplicate, missing or mistyped key, two rules for one operator, an unknown function or name in an expression, a composite that
    /// uses itself, a base operator that expr/base_operators does not have ... A text of a file that the paths have too is left out.
    static Rulebook load(const std::vector<std::filesystem::path> &paths, const std::vector<RuleText> &texts = {});
    /// Adds the rules of one YAML text; `file` stands in diagnostics.
    void add(const std::string &yaml, const std::string &file);

    /// nullptr when there is none.
    const Rule *find(const std::string &op) const;
    /// Throws UserError at `where`: "unknown operator 'x'" with the nearest names and how to add one.
    const Rule &rule(const std::string &op, const Location &where) const;
    /// The operators that the value of a composite is made with, as its text names them, those of its lets among them; none of a base
    /// operator.
    std::vector<const Rule *> callees(const Rule &rule) const;
    /// The operator makes a plain operand scaled: it chooses a scale (Rule::chooses_scale), or is a composite of one that does.
    bool makes_scaled(const Rule &rule) const;
    /// Sorted by family, then name.
    std::vector<const Rule *> rules() const;

private:
    std::map<std::string, Rule> rules_;
};

} // namespace scalide

#pragma once
#include "rulebook/rule.h"
#include <filesystem>

namespace scalide {

/// The text of a rule file in memory. Messages use `file` as its name.
struct RuleText {
    std::string file, text;
};

/// Returns the file, or all *.yaml files below a folder except policies, sorted. Throws UserError if there is none.
std::vector<std::string> rule_files(const std::filesystem::path &path);

/// Returns the operator of `names` that a user probably means: by a name that another library has for it (matmul), or by spelling. Empty if
/// there is none.
std::string nearest_operator(const std::string &name, const std::vector<std::string> &names);

/// All rules. They define the operators, so every pass that needs the meaning of an operator gets a rulebook.
class Rulebook {
public:
    /// Loads single files and all *.yaml files below folders, sorted by path. A text is ignored if the paths contain its file. Throws
    /// UserError at the first mistake, such as an unknown key, two rules for one operator, an unknown name in an expression, or a composite
    /// that uses itself.
    static Rulebook load(const std::vector<std::filesystem::path> &paths, const std::vector<RuleText> &texts = {});
    /// Adds the rules of a YAML text. Messages use `file` as its name.
    void add(const std::string &yaml, const std::string &file);

    /// Returns a rule, or nullptr.
    const Rule *find(const std::string &op) const;
    /// Returns a rule. Throws UserError at `where` if it does not exist; the message suggests similar names.
    const Rule &rule(const std::string &op, const Location &where) const;
    /// Returns the operators that the value and the lets of a composite call. Empty for a base operator.
    std::vector<const Rule *> callees(const Rule &rule) const;
    /// Returns true if the operator makes a plain operand scaled: Rule::chooses_scale is true for it, or for an operator that it calls.
    bool makes_scaled(const Rule &rule) const;
    /// Returns true if the value of the operator is its first operand, so that it only changes how that operand is stored.
    bool keeps_value(const Rule &rule) const;
    /// Returns all rules, sorted by family and name.
    std::vector<const Rule *> rules() const;

private:
    std::map<std::string, Rule> rules_;
};

} // namespace scalide

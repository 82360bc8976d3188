#pragma once
#include "rulebook/policy.h"
#include "transforms/numerics/policy_roles.h"

namespace scalide {

/// True when a scope or a name fits the glob. Both are segments between `/` or `.`: `*` stands for any part of one, `**` for any number of
/// them: "head/**" fits head too, "**/head" and "**.bias" fit what is at the top. An empty glob fits everything.
bool glob_matches(std::string_view glob, std::string_view name);

/// A place that a policy is asked about.
struct PolicyPlace {
    PolicyRule::Place place;
    std::vector<std::string> roles; ///< of place_words: input, weight, primal ...
    std::string name;               ///< of an argument or a result of the program; in the rulebook, of an operand or a result
    std::string op, scope;          ///< of the node
    Extents shape;
    std::vector<std::vector<std::string>> operands = {}; ///< of a whole node: the roles of each operand
    std::vector<std::string> arguments = {};             ///< of a product: the arguments that it multiplies, or makes a gradient of
};

/// Tells for each place of a program which row of a policy decides for it, and at the end which rows decided for none: those say
/// something else than their author means.
class PolicyMatcher {
public:
    /// Throws UserError as check_policy does.
    PolicyMatcher(const Policy &policy, const Rulebook &rulebook, const Program &program);

    /// The first row that matches; nullptr when none does, or when the value is no float. Nodes, arguments and results are those of the
    /// program.
    const PolicyRule *argument(const Argument &argument);
    const PolicyRule *operand(const Node &node, size_t index);
    const PolicyRule *node(const Node &node);
    const PolicyRule *node_result(const Node &node, size_t index);
    const PolicyRule *program_result(const Result &result);
    /// True when a row `keep` matches the node.
    bool keeps(const Node &node) const;

    /// After all places have been asked about: throws UserError at the first row, but optional ones, that matched none ("no argument is
    /// called ..."), or all of whose places went to rows before it. An inherited row may be replaced by those before it.
    void check() const;

private:
    struct Count {
        size_t matched = 0, decided = 0;
        std::set<int> before; ///< lines of the rows that decided in its place
    };
    const PolicyRule *decide(PolicyPlace place, ValueId value);
    PolicyPlace of_node(const Node &node, PolicyRule::Place place) const;
    std::vector<std::string> roles_of(ValueId operand) const;

    const Policy &policy_;
    const Rulebook &rulebook_;
    const Program &program_;
    const PolicyRoles roles_;
    const std::vector<int> producers_;
    std::vector<Count> counts_;       ///< by row
    std::vector<PolicyPlace> places_; ///< all that were asked about
};

} // namespace scalide

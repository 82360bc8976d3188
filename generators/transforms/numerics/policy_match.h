#pragma once
#include "rulebook/policy.h"
#include "transforms/numerics/policy_layers.h"

namespace scalide {

/// True if a scope or a name matches the glob. Both consist of segments between `/` or `.`. `*` matches any part of one segment, `**` any
/// number of segments. So "head/**" also matches "head", and "**/head" and "**.bias" also match names at the top. An empty glob matches
/// everything.
bool glob_matches(std::string_view glob, std::string_view name);

/// A site of a program at which a policy may have a rule: an argument, an operand, a node, a result.
struct PolicyPlace {
    PolicyRule::Place place;
    std::vector<std::string> roles = {}; ///< words of place_words(): input, weight, primal ...
    std::string name = {};               ///< of an argument or a result of the program; in the rulebook, of an operand or a result
    std::string op = {}, scope = {};     ///< of the node
    std::string tensor = {};             ///< the value of the program, or the name of its result
    std::vector<Dtype> dtypes = {};      ///< of the array; for a node: of each float operand
    LayerFacts layer = {};               ///< of the matmul; for another site, `arrays` is the shape of the array alone
    std::vector<std::vector<std::string>> operands = {}; ///< for a node or one of its operands: the roles of each operand
    std::vector<std::string> arguments = {}; ///< for a node of a matmul: the arguments that it multiplies, or whose gradient it computes
    bool is_update = false; ///< the node is neither a part of the model nor of a gradient (model_values): rules with `compute` do not match
};

/// Returns how many segments of a scope the glob needs: 1 for "**/amp_stop/**" at "amp_stop/mlp", 2 at "mlp/amp_stop". Returns 0 for an
/// empty glob. The glob must match the scope.
size_t matched_depth(std::string_view glob, std::string_view scope);

/// Returns the conditions of a rule except its operators: "operand: primal, layer: first".
std::string conditions_of(const PolicyRule &row);

/// Finds for each site of a program the policy rule that decides it. At the end, it reports rules that decided no site, because they do not
/// do what their author expects.
class PolicyMatcher {
public:
    /// Throws UserError if the policy is invalid (check_policy).
    PolicyMatcher(const Policy &policy, const Rulebook &rulebook, const Program &program);

    /// Returns the first rule that matches. Returns nullptr if none does or if the value is no float. Nodes, arguments and results must
    /// belong to the program.
    const PolicyRule *argument(const Argument &argument);
    const PolicyRule *operand(const Node &node, size_t index);
    /// For a node, the rules with `compute` have an order of their own, as in jaxamp: first the one whose scope is the outermost scope of
    /// the node, then the first one without a scope.
    const PolicyRule *node(const Node &node);
    const PolicyRule *node_result(const Node &node, size_t index);
    const PolicyRule *program_result(const Result &result);
    /// True if a `keep` rule matches the node, or if a rule without an action decides for the node or one of its operands.
    bool keeps(const Node &node) const;

    /// True for a matmul or convolution.
    bool is_matmul(const Node &node) const { return layers_.find(node) != nullptr; }
    /// Returns why no rule matches an operand, for example "no rule matches, the nearest needs scope: head/**". The nearest rule is the
    /// first rule with an action of which one condition does not hold.
    std::string why_no_rule(const Node &node, size_t index) const;

    /// Call this after all sites have been asked about. Throws UserError for the first rule that matched no site ("no argument is called
    /// ..."), or whose sites were all decided by earlier rules. Optional rules may match nothing. Inherited rules may be hidden by earlier
    /// ones.
    void check() const;

private:
    struct Count {
        size_t matched = 0, decided = 0;
        std::set<int> before; ///< lines of the rules that decided instead
    };
    const PolicyRule *decide(PolicyPlace place, ValueId value);
    size_t deciding(const std::vector<size_t> &matching, const PolicyPlace &place) const;
    const PolicyRule *first_match(const PolicyPlace &place) const;
    PolicyPlace of_node(const Node &node, PolicyRule::Place place) const;
    PolicyPlace of_operand(const Node &node, size_t index) const;
    PolicyPlace of_operands(const Node &node) const;
    PolicyPlace with_array(PolicyPlace place, ValueId value) const;
    std::vector<std::string> roles_of(ValueId operand) const;

    const Policy &policy_;
    const Rulebook &rulebook_;
    const Program &program_;
    const PolicyRoles roles_;
    const PolicyLayers layers_;
    const std::vector<int> producers_;
    const std::set<ValueId> optimizer_states_;
    const std::set<ValueId> of_model_; ///< results of the nodes of the model and of its gradients
    std::vector<Count> counts_;        ///< by rule
    std::vector<PolicyPlace> places_;  ///< all sites that were asked about
};

} // namespace scalide

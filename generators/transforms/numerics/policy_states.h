#pragma once
#include "ir/rewrite.h"
#include "rulebook/builder.h"
#include "rulebook/policy.h"
#include "transforms/numerics/numerics_report.h"
#include <deque>
#include <map>

namespace scalide {

/// The array for which a rule of a policy asks for a state or a calibrated scale, in the source and in the rewritten program, and the place
/// where the rule matches.
struct PolicyTensor {
    ValueId source, value;
    std::string scope = {}, place = {};
};

/// Adds the states of a policy (PolicyState) and calibrated scales to a program that is rewritten.
class PolicyStates {
public:
    /// `producers`: of the source of `rewriter`. `decisions` may be null.
    PolicyStates(Rewriter &rewriter, Builder &builder, const Policy &policy, const std::vector<int> &producers, PolicyDecisions *decisions)
        : rewriter_(rewriter), builder_(builder), policy_(policy), producers_(producers), decisions_(decisions) {}

    /// Returns the argument that holds a state. At its first use it is added, after the states that its next value reads. `stored`: the
    /// format that the rule stores.
    ValueId state(const std::string &name, const PolicyTensor &tensor, std::optional<Dtype> stored);

    /// Returns the scale of a tensor by the amax of the calibration. Throws UserError if the calibration does not have it.
    ValueId calibrated(const PolicyTensor &tensor, const PolicyRule &rule);

    /// Adds the results that hold the next values of all states.
    void place_next();

private:
    struct Added {
        const PolicyState *state;
        ValueId owner; ///< in the source: the tensor that names the state; -1: state of the program
        std::optional<Dtype> stored;
        int argument;                      ///< index
        std::vector<PolicyTensor> tensors; ///< `source`: the array of which moved forms share the state
        ValueId next = -1;                 ///< set by next_of
    };
    Added &added(const PolicyState &state, const PolicyTensor &tensor, std::optional<Dtype> stored);
    ValueId next_of(Added &added);
    ValueId owner_of(const PolicyState &state, const PolicyTensor &tensor);
    ValueId root(ValueId tensor) const;
    ValueId argument_value(const Added &added) const { return rewriter_.result().arguments[added.argument].value; }

    Rewriter &rewriter_;
    Builder &builder_;
    const Policy &policy_;
    const std::vector<int> &producers_;
    PolicyDecisions *decisions_;
    std::deque<Added> states_;              ///< in the order of first use. A reference stays valid when one is added
    std::map<ValueId, ValueId> owners_;     ///< by array: the first array at the same place of its scope
    std::map<std::string, ValueId> places_; ///< by scope and place: the first array
};

} // namespace scalide

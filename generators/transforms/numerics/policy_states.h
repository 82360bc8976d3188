#pragma once
#include "ir/rewrite.h"
#include "rulebook/builder.h"
#include "rulebook/policy.h"
#include "transforms/numerics/numerics_report.h"
#include <deque>
#include <map>
#include <set>

namespace scalide {

/// The array for which a rule of a policy asks for a state or a calibrated scale, in the source and in the rewritten program, and the place
/// where the rule matches.
struct PolicyTensor {
    ValueId source, value;
    std::string scope = {}, place = {};
};

/// Runs an action that adds an operator for a line of a policy. The program does not contain this operator, so an error of it also names
/// the line and what it does: "p.yaml:4 replaces dot_general with it".
template<typename Action>
auto naming_line(const Location &line, const std::string &what_it_does, const Action &action) {
    try {
        return action();
    } catch (const UserError &error) {
        Message message = error.message();
        const std::string place = to_string(line), who = place == to_string(message.location) ? "This line" : place;
        message.way_out += (message.way_out.empty() ? "" : ". ") + who + " " + what_it_does + " with it";
        throw UserError(message);
    }
}

/// Adds the states of a policy (PolicyState) and calibrated scales to a program that is rewritten.
class PolicyStates {
public:
    /// `producers`: of the source of `rewriter`. `decisions` may be null.
    PolicyStates(Rewriter &rewriter, Builder &builder, const Policy &policy, const std::vector<int> &producers, PolicyDecisions *decisions);

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
    std::string free_name(const std::string &name) const;
    ValueId argument_value(const Added &added) const { return rewriter_.result().arguments[added.argument].value; }

    Rewriter &rewriter_;
    Builder &builder_;
    const Policy &policy_;
    const std::vector<int> &producers_;
    PolicyDecisions *decisions_;
    std::set<std::string> names_;           ///< of the values and results of the source
    std::deque<Added> states_;              ///< in the order of first use. A reference stays valid when one is added
    std::map<ValueId, ValueId> owners_;     ///< by array: the first array at the same place of its scope
    std::map<std::string, ValueId> places_; ///< by scope and place: the first array
};

} // namespace scalide

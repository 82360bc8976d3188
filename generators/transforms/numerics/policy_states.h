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

class PolicyStates;

/// Where a region is: in which program, at which node of its source.
struct AroundRegion {
    PolicyStates &states;
    const Node &node;
    std::vector<int> operands; ///< by argument of the region: the number of the operand that it captures; -1: it is no capture
};

/// A state of a policy that a region reads.
struct StateInRegion {
    const PolicyState *state;
    std::string owner; ///< what names the state within the region
    std::string name;
    std::optional<Dtype> stored;
    ValueId before;       ///< the argument of the region; -1: this region does not read it
    ValueId next = -1;    ///< the next value after one step; -1: the program around computes it
    ValueId lent = -1;    ///< the state in the program around, if it belongs to an array or to a state there
    bool follows = false; ///< the next value follows from the next values of other states alone, so the program around computes it

    /// True if the region computes the next value.
    bool is_own() const { return lent < 0 && !follows; }
};

/// Adds the states of a policy (PolicyState) and calibrated scales to a program that is rewritten. In a region, a state of an array that
/// the region captures is a state of the program around. Another state is captured, too: all steps of a loop read the value before the
/// loop, and its next value is the largest of the values that the steps give.
class PolicyStates {
public:
    /// `producers`: of the source of `rewriter`. `decisions` may be null.
    PolicyStates(Rewriter &rewriter, Builder &builder, const Policy &policy, const std::vector<int> &producers, PolicyDecisions *decisions,
                 std::optional<AroundRegion> around = {});

    /// Returns the argument that holds a state. At its first use it is added, after the states that its next value reads. `stored`: the
    /// format that the rule stores.
    ValueId state(const std::string &name, const PolicyTensor &tensor, std::optional<Dtype> stored);

    /// Returns the scale of a tensor by the amax of the calibration. Throws UserError if the calibration does not have it.
    ValueId calibrated(const PolicyTensor &tensor, const PolicyRule &rule);

    /// Adds the results that hold the next values of all states.
    void place_next();

    /// Returns the states of region number `number` of a node, in the order of their arguments, and computes their next values. Removes the
    /// arguments.
    std::vector<StateInRegion> take_from_region(size_t number);
    /// Returns the value of a state that a region of node `where` reads, and adds the state at its first use.
    ValueId enter(const StateInRegion &inner, const std::string &where);
    /// Sets the next value that a node with regions computes.
    void give(const StateInRegion &inner, const std::string &where, ValueId next);

private:
    /// What a state belongs to: an array, a place in a scope, or the program.
    struct Owner {
        std::string key;  ///< equal for the same owner
        std::string name; ///< of the array; empty: the program
    };
    struct Added {
        const PolicyState *state;
        std::string owner; ///< Owner::key
        std::string name;
        std::optional<Dtype> stored;
        ValueId value;                          ///< the argument
        std::vector<PolicyTensor> tensors = {}; ///< `source`: the array of which moved forms share the state
        std::vector<ValueId> given = {};        ///< next values from nodes with regions
        ValueId next = -1;                      ///< set by next_of
        ValueId lent = -1;                      ///< see StateInRegion
    };
    Added &add(const PolicyState &state, const Owner &owner, std::optional<Dtype> stored);
    Added *find(const PolicyState &state, const std::string &owner, std::optional<Dtype> stored);
    /// True if the next value depends on tensors, and not on other states alone.
    bool reads_tensors(const Added &state) const;
    std::optional<ValueId> lent(const PolicyState &state, ValueId array, const PolicyTensor &tensor, std::optional<Dtype> stored);
    Added &added(const PolicyState &state, const PolicyTensor &tensor, std::optional<Dtype> stored);
    ValueId next_of(Added &added);
    Owner owner_of(const PolicyState &state, const PolicyTensor &tensor);
    static std::string owner_in(const StateInRegion &inner, const std::string &where);
    ValueId root(ValueId tensor) const;
    std::string free_name(const std::string &name) const;

    Rewriter &rewriter_;
    Builder &builder_;
    const Policy &policy_;
    const std::vector<int> &producers_;
    PolicyDecisions *decisions_;
    const std::optional<AroundRegion> around_; ///< of a region
    std::set<std::string> names_;              ///< of the values and results of the source
    std::deque<Added> states_;                 ///< in the order of first use. A reference stays valid when one is added
    std::map<ValueId, Owner> owners_;          ///< by array: the place in its scope where it was first read, and the first array there
    std::map<std::string, ValueId> places_;    ///< by scope and place: the first array
};

} // namespace scalide

#pragma once
#include "ir/program.h"
#include "rulebook/rulebook.h"
#include <set>

namespace scalide {

/// Finds the roles of a program's arguments. Only the program's operators decide, not the arguments' names, nor whether they are inout.
///
/// A contraction combines two operands. It is an operator of the family `contract`, or a convolution. An operand counts as an argument if
/// it comes from one through movement and conversions alone; otherwise it is computed. A *weight* is an argument that a primal contraction
/// combines with a value that depends on an argument. It must not be the data of another contraction:
/// - If one operand is computed, the argument is the weight, whichever operand it is.
/// - If both are arguments and only one has a symbolic extent (a batch), that one is the data.
/// - Otherwise, if the gradient multiplies only one of them by a cotangent, that one is the data: the first layer's data occurs in the
///   gradient of its weight, but its own gradient is not computed.
/// - Otherwise the first operand is the data.
class PolicyRoles {
public:
    PolicyRoles(const Program &program, const Rulebook &rulebook);

    /// True for a weight, and for values that come from one through movement and conversions alone.
    bool is_weight(ValueId value) const { return source_[value] >= 0 && weights_.contains(source_[value]); }

    /// Returns the value of which `value` is a moved or converted form.
    ValueId root(ValueId value) const { return root_[value]; }

    /// True for an operator that combines two operands.
    bool is_contraction(const Node &node) const;

    /// Returns the arguments that a contraction multiplies. A contraction that computes the gradient of an argument multiplies two computed
    /// arrays: the other operand of the argument's contraction, and the cotangent of its result. The argument is found by two facts. A
    /// primal contraction multiplies it by the first array. Another contraction multiplies it by the cotangent, if the gradient of the
    /// first array is needed.
    std::set<ValueId> multiplied(const Node &node) const;

private:
    struct Meeting {
        ValueId a, b; ///< the arguments; -1: computed
    };
    void trace(const Node &node);
    void remember(ValueId argument, ValueId other, Role role);
    void add_gradients(ValueId data, ValueId cotangent, std::set<ValueId> &arguments) const;
    void meet(const Node &node);
    void decide(const Meeting &meeting, std::set<ValueId> &data);

    const Program &program_;
    const Rulebook &rulebook_;
    std::vector<ValueId> source_;                     ///< by value: the argument of which it is a moved or converted form; -1: none
    std::vector<ValueId> root_;                       ///< by value: the value of which it is a moved or converted form
    std::map<ValueId, std::set<ValueId>> met_;        ///< by root: the arguments with which primal contractions combine it
    std::map<ValueId, std::set<ValueId>> cotangents_; ///< by root of a cotangent: the arguments with which contractions combine it
    std::set<ValueId> is_multiplied_;                 ///< the arguments of the primal contractions of this program
    std::set<ValueId> has_cotangent_;                 ///< the arguments that a contraction combines with a cotangent
    std::vector<bool> depends_;                       ///< by value: whether it depends on an argument
    std::vector<Role> roles_;                         ///< by value: the role of the node that computes it
    std::vector<Meeting> meetings_;
    std::set<ValueId> meets_cotangent_, weights_;
};

} // namespace scalide

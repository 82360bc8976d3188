#pragma once
#include "ir/program.h"
#include "rulebook/rulebook.h"
#include <set>

namespace scalide {

/// What the arguments of a program are, by what the program does with them: not by their names, nor by whether they are inout.
///
/// Two operands meet in a contraction: an operator of family `contract`, or a convolution. An operand is an argument where it comes from
/// one by movement and conversions alone; else it is computed. A *weight* is an argument that meets in a primal contraction what depends on
/// an argument, and is the data of none:
///   - an argument that meets something computed is its weight, whichever operand it is;
///   - of two arguments that meet, the data is the one with a symbolic extent, if only one has any (a batch); else the one that meets a
///     cotangent in the gradient, if only one does (the gradient of a first layer's weight is made of its data; that of the data nobody
///     asks for); else the first operand.
class PolicyRoles {
public:
    PolicyRoles(const Program &program, const Rulebook &rulebook);

    /// True for a weight, and for what comes from one by movement and conversions alone.
    bool is_weight(ValueId value) const { return source_[value] >= 0 && weights_.contains(source_[value]); }

    /// The arguments that a contraction multiplies. A contraction that makes the gradient of an argument multiplies two computed arrays:
    /// the one that the argument met, and the cotangent of that contraction, which multiplies the argument too where anybody asks for it.
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
    std::vector<ValueId> source_;                     ///< by value: the argument that it is, moved and converted; -1: none
    std::vector<ValueId> root_;                       ///< by value: the value that it is, moved and converted
    std::map<ValueId, std::set<ValueId>> met_;        ///< by root: the arguments that it meets in primal contractions
    std::map<ValueId, std::set<ValueId>> cotangents_; ///< by root of a cotangent: the arguments that it meets
    std::set<ValueId> is_multiplied_;                 ///< the arguments of primal contractions that are left
    std::set<ValueId> has_cotangent_;                 ///< the arguments that meet one
    std::vector<bool> depends_;                       ///< by value: on an argument
    std::vector<Role> roles_;                         ///< by value: of the node that makes it
    std::vector<Meeting> meetings_;
    std::set<ValueId> meets_cotangent_, weights_;
};

} // namespace scalide

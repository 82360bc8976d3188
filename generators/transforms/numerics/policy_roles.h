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

private:
    struct Meeting {
        ValueId a, b; ///< the arguments; -1: computed
    };
    void trace(const Node &node);
    void meet(const Node &node);
    void decide(const Meeting &meeting, std::set<ValueId> &data);

    const Program &program_;
    const Rulebook &rulebook_;
    std::vector<ValueId> source_; ///< by value: the argument that it is, moved and converted; -1: none
    std::vector<bool> depends_;   ///< by value: on an argument
    std::vector<Role> roles_;     ///< by value: of the node that makes it
    std::vector<Meeting> meetings_;
    std::set<ValueId> meets_cotangent_, weights_;
};

} // namespace scalide

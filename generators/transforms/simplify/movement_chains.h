#pragma once
#include "transforms/simplify/facts.h"
#include <functional>

namespace scalide {

/// Adds a node with one result, after simplification. Its rule gives the types.
using Emit = std::function<ValueId(const std::string &op, const std::vector<ValueId> &operands, const Attributes &attributes)>;

/// A node that is about to be added to a program. Its operands are values of that program.
struct Candidate {
    const Node &node;
    const Type &type; ///< type of its result
    Facts &facts;
    const Emit &emit;

    ValueId operand() const { return node.operands[0]; }
    const Type &operand_type() const { return facts.program().type(operand()); }
};

/// Returns a simpler value equal to the candidate. The candidate is movement or a conversion that reads another one, or that changes
/// nothing: reshape of reshape, transpose of transpose, slice of slice. Returns nothing if there is no simpler value.
std::optional<ValueId> merge_movement(const Candidate &candidate);

} // namespace scalide

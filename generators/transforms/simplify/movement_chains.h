#pragma once
#include "transforms/simplify/facts.h"
#include <functional>

namespace scalide {

/// Adds a node with one result, simplified; types come from its rule.
using Emit = std::function<ValueId(const std::string &op, const std::vector<ValueId> &operands, const Attributes &attributes)>;

/// A node about to be added to a program, with operands of that program.
struct Candidate {
    const Node &node;
    const Type &type; ///< of its one result
    Facts &facts;
    const Emit &emit;

    ValueId operand() const { return node.operands[0]; }
    const Type &operand_type() const { return facts.program().type(operand()); }
};

/// A simpler value equal to a movement or a conversion that reads another one, or that moves nothing: reshape of reshape, transpose of
/// transpose, slice of slice, widen of narrow of widen ... Nothing when there is none.
std::optional<ValueId> merge_movement(const Candidate &candidate);

} // namespace scalide

#pragma once
#include "rulebook/rulebook.h"

namespace scalide {

/// A vector-Jacobian product whose nodes follow the nodes of the primal program.
struct Vjp {
    std::vector<ValueId> gradients; ///< the cotangent of each value of `wrt`; -1 if it is always zero
    size_t first_node = 0;          ///< the first node that was appended
};

/// Does what append_vjp does, but makes no zeros. Composites and loops of the primal program may change; they compute the same values.
Vjp append_partial_vjp(Program &program, const Rulebook &rulebook, const std::vector<ValueId> &outputs,
                       const std::vector<ValueId> &cotangents, const std::vector<ValueId> &wrt);

} // namespace scalide

#pragma once
#include "ir/program.h"
#include "rulebook/rulebook.h"

namespace scalide {

/// A condition that a program must satisfy between two passes, in addition to those of ir/verify.h. The list of passes (pipeline.cpp)
/// states after which passes each one holds.
enum class Invariant : uint8_t {
    typed,     ///< every node has the attributes and result types of its rule
    no_calls,  ///< no sub-programs, and no operator that takes one
    wide,      ///< base operators compute in f32 (f64 in rank 0), integers and bools; low-precision floats are only converted and moved
    no_scaled, ///< arguments and results are plain arrays, or data and scales of scaled ones
    base,      ///< only base operators; each dot_general has at most one axis in each group
    kernels,   ///< only calls, of kernels that satisfy the contract of their kind (kinds/kernel_kinds.h)
};

/// Throws InternalError if `program` violates an invariant: "internal error: after <after>: <op>.<field>: <requirement>, got <got>".
void check_invariant(Invariant invariant, const Program &program, const Rulebook &rulebook, const std::string &after);

/// Return why a node violates an invariant; empty if it does not. These are the invariants of single nodes.
std::string why_not_typed(const Program &program, const Node &node, const Rulebook &rulebook);
std::string why_not_wide(const Program &program, const Node &node);
std::string why_not_base(const Program &program, const Node &node);

} // namespace scalide

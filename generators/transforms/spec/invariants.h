#pragma once
#include "ir/program.h"
#include "rulebook/rulebook.h"

namespace scalide {

/// What a program may hold between two passes, beyond what ir/verify.h asks of every program. The list of passes (pipeline.cpp) says
/// from where on each holds.
enum class Invariant : uint8_t {
    typed,     ///< every node has the attributes and the result types that its rule gives it
    no_calls,  ///< no sub-programs, and no operator that takes one
    wide,      ///< base operators compute on f32 (f64 in rank 0), integers and bools: narrow floats are converted and moved alone
    no_scaled, ///< arguments and results are whole plain arrays or the parts of scaled ones
    base,      ///< base operators alone, each dot_general with one axis a group at most
    kernels,   ///< calls alone, of kernels that satisfy the contract of their kind (kinds/kernel_kinds.h)
};

/// Throws InternalError where `program` breaks an invariant: "internal error: after <after>: <op>.<field>: <requirement>, got <got>".
void check_invariant(Invariant invariant, const Program &program, const Rulebook &rulebook, const std::string &after);

/// Why a node breaks an invariant; empty when it does not. One function an invariant that is one of single nodes.
std::string why_not_typed(const Program &program, const Node &node, const Rulebook &rulebook);
std::string why_not_wide(const Program &program, const Node &node);
std::string why_not_base(const Program &program, const Node &node);

} // namespace scalide

#pragma once
#include "ir/program.h"
#include "rulebook/rulebook.h"

namespace scalide {

/// An operator on a sub-program: `call`, `grad`, `value_and_grad`. Its attribute `program` names the sub-program f. The last two also
/// have `wrt`, a list of arguments of f, and give the gradients of the only rank-0 float result of f with respect to them.
struct CallKind {
    std::string_view op;
    /// Result types of a call, from the types of the sub-program.
    std::vector<Type> (*result_types)(const Node &node, const Program &callee);
    /// The program whose nodes stand for the call: the sub-program, or its gradient.
    Program (*body)(const Node &node, const Program &callee, const Rulebook &rulebook);
};

/// nullptr when `op` is an ordinary operator.
const CallKind *find_call_kind(std::string_view op);

/// The sub-program that a call names. Throws UserError at the call when there is none.
const Program &callee_of(const Node &call, const std::vector<Program> &programs);

} // namespace scalide

#pragma once
#include "ir/program.h"
#include "rulebook/rulebook.h"

namespace scalide {

/// A call at which types are known.
struct CallPlace {
    const Node &node;
    std::vector<Type> operands;
    const std::vector<Symbol> &symbols; ///< of the caller
    const Rulebook &rulebook;
};

/// An operator on a sub-program: `call`, `grad`, `value_and_grad`, `reduce`, `reduce_window`. Its attribute `program` names the sub-program
/// f. The gradients also have `wrt`, a list of arguments of f, and are those of the only rank-0 float result of f with respect to them.
/// Reductions: user_reductions.h.
struct CallKind {
    std::string_view op;
    /// What is called, with arguments of the operands' types: f in the caller's symbols, or a reduction by f.
    Program (*callee)(const CallPlace &place, const Program &named);
    /// Result types of a call, from the types of the sub-program.
    std::vector<Type> (*result_types)(const Node &node, const Program &callee);
    /// The program whose nodes stand for the call: the sub-program, or its gradient.
    Program (*body)(const Node &node, const Program &callee, const Rulebook &rulebook);
};

/// nullptr when `op` is an ordinary operator.
const CallKind *find_call_kind(std::string_view op);

/// What a call of this kind calls; `programs`: what can be named. Throws UserError at the call when the name is none of them.
Program callee_of(const CallKind &kind, const CallPlace &place, const std::vector<Program> &programs);

} // namespace scalide

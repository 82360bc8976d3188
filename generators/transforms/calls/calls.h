#pragma once
#include "ir/program.h"
#include "rulebook/rulebook.h"

namespace scalide {

/// A call whose operand types are known.
struct CallPlace {
    const Node &node;
    std::vector<Type> operands;
    const std::vector<Symbol> &symbols; ///< of the caller
    const Rulebook &rulebook;
};

/// An operator that stands for a program: `call`, `grad`, `value_and_grad`, `reduce`, `reduce_window` and `einsum`. The attribute `program`
/// names the sub-program f; `einsum` has none. `grad` and `value_and_grad` also have `wrt`, a list of arguments of f. They differentiate
/// the only rank-0 float result of f. user_reductions.h describes the reductions, einsum.h the sums of products.
struct CallKind {
    std::string_view op;
    bool names_program; ///< it has the attribute `program`
    /// Returns the called program, with arguments of the operands' types: f in the caller's symbols, a reduction by f, or a sum of
    /// products.
    Program (*callee)(const CallPlace &place, const Program &named);
    /// Returns the result types of a call.
    std::vector<Type> (*result_types)(const Node &node, const Program &callee);
    /// Returns the program whose nodes replace the call: the sub-program or its gradient.
    Program (*body)(const Node &node, const Program &callee, const Rulebook &rulebook);
};

/// Returns nullptr if `op` is an ordinary operator.
const CallKind *find_call_kind(std::string_view op);

/// Returns the program that a call of this kind calls. `programs` lists the available sub-programs. Throws UserError at the call if it
/// names none of them.
Program callee_of(const CallKind &kind, const CallPlace &place, const std::vector<Program> &programs);

} // namespace scalide

#pragma once
#include "ir/program.h"
#include "rulebook/policy.h"
#include "transforms/target_facts.h"
#include <set>

/// The passes up to base operators, one per file of the same name (those of fusion: fusion/fuse.h). Each takes a verified program and
/// returns one.
namespace scalide {

struct NumericsDecision;

/// Fills in types that the text left out and checks every node against its rule (where constraints, dtypes, attribute defaults).
/// A rank-0 operand beside operands of higher rank is broadcast. Throws UserError at the node's location.
Program infer_types(const Program &program, const Rulebook &rulebook);

/// Replaces `call` nodes by the nodes of their programs, and `grad {program: f, wrt: [w, b]}`, `value_and_grad {...}` by the gradients of
/// f's only rank-0 float result. Scopes of f are put within that of the call. The result has no sub-programs.
Program inline_calls(const Program &program, const Rulebook &rulebook);

/// Constant folding (f64 evaluation, rounded to the node's dtype), identities, select of a constant, chains of movement operators, equal
/// sub-expressions made once, dead nodes dropped. Changes no bit in mode `stored`, as long as scales (arguments `scale of x`) are neither
/// negative nor NaN; in mode `real` folded constants are seen rounded.
Program simplify(const Program &program, const Rulebook &rulebook);

/// Formats and rescales as ordinary operators: applies the policy, makes every float node f32, places convert_element_type where values
/// are rounded. Afterwards a narrow dtype comes only out of an argument or a convert, and is read only by a
/// widening convert. Arguments are retyped as the policy says. `decisions`: gets what was decided, place by place (numerics_report.h).
Program assign_numerics(const Program &program, const Rulebook &rulebook, const Policy &policy,
                        std::vector<NumericsDecision> *decisions = nullptr);

/// Replaces every scaled value x by x.data and x.scale, and each operator on scaled operands by what its rule names. Arguments and
/// results that are scaled become pairs, `x.data: .. data of x, x.scale: f32[] scale of x`; where such a name is taken the part has
/// another. An operator that chooses a scale (set_scaling, dynamic_rescale) makes its operand scaled, stop_scaling makes it an ordinary
/// number again; products read the data behind that number and multiply the sums by its scale. Throws UserError when an operator has no
/// rule for a scaled operand.
Program propagate_scales(const Program &program, const Rulebook &rulebook, const ScaleSettings &settings);

/// Replaces composites by the base operators of their `value`. dot_general gets at most one axis per group (batch, free lhs, free rhs,
/// contracting), by reshapes and transposes, in any order of axes. Of what has several forms it takes the one that costs least.
Program expand(const Program &program, const Rulebook &rulebook, const TargetFacts &facts = {});

/// Replaces the composites that are made by one of these operators, until each of these is a node of its own (`dot` becomes dot_general):
/// what is said of an operator holds within composites too.
Program expand_to(const Program &program, const Rulebook &rulebook, const std::set<std::string> &ops);

/// Groups base operators into kernels: the result's nodes are all `call`s to sub-programs with attribute `kind`, in a run order
/// that reads every inout argument before it is overwritten. See kinds/README.md for what each kind may contain.
/// Rank-0 arithmetic between kernels becomes kernels of kind `scalar`.
Program fuse(const Program &program, const TargetFacts &facts);

/// Appends to `program` the nodes that compute d loss / d w for each of `wrt`, with Role::cotangent, and returns them in that order
/// (zeros where w does not reach the loss). `loss` is a rank-0 float. Throws UserError at an operator that has no gradient.
std::vector<ValueId> append_gradient(Program &program, const Rulebook &rulebook, ValueId loss, const std::vector<ValueId> &wrt);

/// The same from given cotangents of several outputs (vector-Jacobian product).
std::vector<ValueId> append_vjp(Program &program, const Rulebook &rulebook, const std::vector<ValueId> &outputs,
                                const std::vector<ValueId> &cotangents, const std::vector<ValueId> &wrt);

} // namespace scalide

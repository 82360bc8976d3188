#pragma once
#include "ir/program.h"
#include "rulebook/policy.h"
#include "transforms/analysis/target_facts.h"
#include <set>

/// The passes that lead to base operators, each in a file of its name. The passes of fusion are in fusion/fuse.h. A pass takes a verified
/// program and returns a verified program.
namespace scalide {

struct PolicyDecisions;

/// Fills in types that the text omits. Checks every node against its rule (where constraints, dtypes, attribute defaults). A rank-0 operand
/// is broadcast if other operands have higher rank. Throws UserError at the node's location.
Program infer_types(const Program &program, const Rulebook &rulebook);

/// Which loops and branches become the nodes of all their steps and branches (calls/unroll.h): all, or an error; those that can; those that
/// are no slower so; none.
enum class Unroll : uint8_t { all, possible, short_ones, none };

/// Replaces `call` nodes by the nodes of their programs. Replaces `grad {program: f, wrt: [w, b]}` and `value_and_grad {...}` by gradients
/// of f's only rank-0 float result. Scopes of f are nested in the scope of the call. The result has no sub-programs. Loops and branches
/// that are not unrolled become `scan`, `while` and `switch`, whose nodes get whole scopes.
Program inline_calls(const Program &program, const Rulebook &rulebook, Unroll unroll = Unroll::all);

/// Folds constants (evaluated in f64, rounded to the node's dtype), applies identities, resolves selects of a constant, and merges chains
/// of movement operators. Equal sub-expressions are computed once, and unused nodes are removed. No bit changes in mode `stored`, provided
/// that scales (arguments `scale of x`) are neither negative nor NaN. In mode `real`, folded constants are visibly rounded.
Program simplify(const Program &program, const Rulebook &rulebook);

/// Applies the policy. Formats and rescales become ordinary operators. Every float node becomes f32, and a convert_element_type marks where
/// a value is rounded. Afterwards a low-precision dtype comes only from an argument or a conversion, and only a widening conversion reads
/// it. Arguments get the dtypes of the policy. `decisions` receives each decision (numerics_report.h).
Program assign_numerics(const Program &program, const Rulebook &rulebook, const Policy &policy, PolicyDecisions *decisions = nullptr);

/// Replaces every scaled value x by x.data and x.scale. Each operator on scaled operands is replaced by what its rule names. Scaled
/// arguments and results become pairs, `x.data: .. data of x, x.scale: f32[] scale of x`. If such a name is taken, the component gets
/// another name. An operator that computes a scale (set_scaling, dynamic_rescale) makes its operand scaled. stop_scaling makes it an
/// ordinary number again; matmuls still read its data and multiply their sums by its scale. Throws UserError if an operator has no rule for
/// a scaled operand.
Program propagate_scales(const Program &program, const Rulebook &rulebook, const ScaleSettings &settings);

/// Replaces composites by the base operators of their `value`. A dot_general gets at most one axis in each group (batch, free lhs, free
/// rhs, contracting), by reshapes and transposes. The axes may have any order. If there are several ways to expand an operator, the
/// cheapest is taken.
Program expand(const Program &program, const Rulebook &rulebook, const TargetFacts &facts = {});

/// Gives functions the attribute `accuracy` where their results are only rounded to bf16, f16 or f8, directly or after operators that keep
/// relative errors. A function with other readers is computed a second time for them, so no reader changes the bits of another. The choice
/// depends on what a rounded value is computed from, and on nothing else.
Program choose_accuracy(const Program &program);

/// Expands the composites that contain one of these operators, until each of these is a node of its own (`dot` becomes dot_general). A
/// policy rule for an operator then applies within composites too. A dot_general without a sum becomes a multiplication.
Program expand_to(const Program &program, const Rulebook &rulebook, const std::set<std::string> &ops);

/// Groups base operators into kernels. The nodes of the result are `call`s of sub-programs with the attribute `kind`. They are in an order
/// that reads every inout argument before it is overwritten. kinds/README.md describes what each kind may contain. Rank-0 arithmetic
/// between kernels becomes kernels of kind `scalar`.
Program fuse(const Program &program, const TargetFacts &facts);

/// Appends the nodes that compute d loss / d w for each w of `wrt`, with Role::cotangent. Returns the gradients in that order; they are
/// zeros if the loss does not depend on w. `loss` is a rank-0 float. Throws UserError at an operator without a gradient.
std::vector<ValueId> append_gradient(Program &program, const Rulebook &rulebook, ValueId loss, const std::vector<ValueId> &wrt);

/// Throws UserError at `location` if one of these values is a constant of the program: constants are prepared once, so nothing trains them.
void refuse_gradient_of_constants(const Program &program, const std::vector<ValueId> &wrt, const Location &location = {});

/// Computes the vector-Jacobian product: the same for several outputs with given cotangents.
std::vector<ValueId> append_vjp(Program &program, const Rulebook &rulebook, const std::vector<ValueId> &outputs,
                                const std::vector<ValueId> &cotangents, const std::vector<ValueId> &wrt);

} // namespace scalide

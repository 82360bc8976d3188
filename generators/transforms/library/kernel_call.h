#pragma once
#include "ir/library_product.h"
#include "transforms/library/matmul_call.h"

namespace scalide {

/// The library call that computes a kernel. The kernel's attribute `call` holds it: fusion writes it, and the plan reads it. Values are
/// indices: of the kernel's arguments, or (`result`, `amax`) of its results; -1: there is none. `nodes`, `operand_nodes` and `overflow` are
/// not kept, because the kernel contains them.
struct KernelCall {
    MatmulCall call;
    ScaleLayouts scales; ///< of the operands
};

/// Rewrites a call with values of the program to indices of a kernel's arguments and results. Throws InternalError if the call has other
/// values.
KernelCall in_kernel(const KernelCall &call, const std::vector<ValueId> &arguments, const std::vector<ValueId> &results);

/// The text form: `[[product, batch, m, n, k], [lhs, argument, contiguous along k, leading, batch stride], [rhs, ...], [lhs_scales,
/// argument, layout], [bias, argument], ..., [result, 0], [accumulation, fast]]`. Missing entries are left out.
Attribute to_attribute(const KernelCall &call);
KernelCall kernel_call(const Attribute &attribute);

} // namespace scalide

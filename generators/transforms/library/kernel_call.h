#pragma once
#include "ir/library_product.h"
#include "transforms/library/matmul_call.h"

namespace scalide {

/// The call by which a library computes a kernel, as the kernel's attribute `call` keeps it: written where the product is found, read where
/// the plan is made. Values are numbers: of the kernel's arguments, `result` and `amax` of its results; -1: there is none. `nodes`,
/// `operand_nodes` and `overflow` are not kept, the kernel has them.
struct KernelCall {
    MatmulCall call;
    ScaleLayouts scales; ///< of the operands
};

/// `call`, whose values are in the program, for a kernel with these arguments and results. Throws InternalError where it has others.
KernelCall in_kernel(const KernelCall &call, const std::vector<ValueId> &arguments, const std::vector<ValueId> &results);

/// `[[product, batch, m, n, k], [lhs, argument, contiguous along k, leading, batch stride], [rhs, ...], [lhs_scales, argument, layout],
/// [bias, argument], ..., [result, 0], [accumulation, fast]]`: what is not there is left out.
Attribute to_attribute(const KernelCall &call);
KernelCall kernel_call(const Attribute &attribute);

} // namespace scalide

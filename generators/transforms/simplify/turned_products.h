#pragma once
#include "ir/program.h"

namespace scalide {

/// `transpose(dot_general(a, b))` that only exchanges the free axes of the operands, and alone reads the product, becomes
/// `dot_general(b, a)`: the same sums, made where they are wanted. JAX's gradient of `x @ w` by w is such a pair; what follows it (the
/// update of w, its largest magnitude) joins the product's kernel. The products that nobody reads any more stay for `remove_dead_nodes`.
Program turn_products(const Program &program);

} // namespace scalide

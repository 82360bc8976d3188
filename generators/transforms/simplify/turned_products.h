#pragma once
#include "ir/program.h"

namespace scalide {

/// Replaces `transpose(dot_general(a, b))` by `dot_general(b, a)`, if the transpose only exchanges the free axes and is the only reader of
/// the product. The sums are the same. JAX's gradient of `x @ w` with respect to w is such a pair. Arithmetic after it (the update of w,
/// its amax) can then join the matmul kernel. The unused dot_general stays for `remove_dead_nodes`.
Program turn_products(const Program &program);

} // namespace scalide

#pragma once
#include "bind/binding.h"
#include "cublaslt/cublaslt.h"

namespace scalide {

/// A step's product in a binding.
struct BoundMatmul {
    int32_t step;
    void *call;         ///< the library's; NULL: the kernel computes it
    uint64_t alignment; ///< of its matrices, when the call was made: the least
    char reason[256];   ///< why the kernel; "" where there is a call
};

/// Makes the binding's table, and asks the library which products it computes. SCALIDE_OUT_OF_MEMORY.
scalide_status choose_matmuls(scalide_binding &binding);
/// Makes the calls, whose arrays' addresses are known, or gives them other arrays. *changed: another choice than before.
scalide_status point_matmuls(scalide_binding &binding, bool *changed);
void release_matmuls(scalide_binding &binding);
/// The product of a step; NULL when it has none.
BoundMatmul *find_matmul(const scalide_binding &binding, int32_t step);

} // namespace scalide

#pragma once
#include "bind/binding.h"
#include "cublaslt/cublaslt.h"

namespace scalide {

/// The matmul of a step in a binding.
struct BoundMatmul {
    int32_t step;
    void *call;         ///< the cuBLASLt call; NULL: the kernel computes the matmul
    uint64_t alignment; ///< smallest alignment of the matrices when the call was created
    char reason[256];   ///< why the kernel computes it; "" if there is a call
};

/// Allocates the table of the binding and asks cuBLASLt which matmuls it can compute. May return SCALIDE_OUT_OF_MEMORY.
scalide_status choose_matmuls(scalide_binding &binding);
/// Creates the calls after the addresses of the arrays are known, or gives them other arrays. Sets *changed if the choice between call and
/// kernel differs from before.
scalide_status point_matmuls(scalide_binding &binding, bool *changed);
void release_matmuls(scalide_binding &binding);
/// Returns the matmul of a step, or NULL if it has none.
BoundMatmul *find_matmul(const scalide_binding &binding, int32_t step);

} // namespace scalide

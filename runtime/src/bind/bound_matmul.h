#pragma once
#include "bind/binding.h"
#include "bind/matmul_forms.h"

namespace scalide {

/// The matmul of a step in a binding.
struct BoundMatmul {
    int32_t step;
    MatmulForm form, told; ///< the second: the form that the log and the recorded launches know
    void *call;            ///< the cuBLASLt call; NULL before point_matmuls(), and if the kernel computes the matmul
    uint64_t alignment;    ///< smallest alignment of the matrices when the call was created
    WidenedMatmul widened; ///< the conversions of a widened form
    char reason[256];      ///< why cuBLASLt does not compute it as asked; "" if it does
    char notice[640];      ///< what the log says about it; "" if it is computed as asked
};

/// Allocates the table of the binding and asks cuBLASLt which matmuls it can compute. May return SCALIDE_OUT_OF_MEMORY.
scalide_status choose_matmuls(scalide_binding &binding);
/// Creates the calls after the addresses of the arrays are known, or gives them other arrays. Sets *changed if a form differs from before.
/// Tells the log which matmuls cuBLASLt does not compute as asked, and returns SCALIDE_UNSUPPORTED if there is one where libraries are
/// required.
scalide_status point_matmuls(scalide_binding &binding, bool *changed);
/// Gives the call of a step, if there is one, the arrays of a step of a loop.
scalide_status point_matmul_again(scalide_binding &binding, int32_t step);
void release_matmuls(scalide_binding &binding);
/// Returns the matmul of a step, or NULL if it has none.
BoundMatmul *find_matmul(const scalide_binding &binding, int32_t step);

} // namespace scalide

#pragma once
#include "cublaslt/cublaslt.h"

namespace scalide {

/// How the matmul of a step is computed. If cuBLASLt refuses a form, bind tries the next one.
enum class MatmulForm : uint8_t {
    asked,          ///< by cuBLASLt, as the plan describes it
    widened,        ///< by cuBLASLt, after kernels have converted the f8 operands to 16 bits, which is exact
    widened_result, ///< in addition, cuBLASLt stores f32, which a kernel converts to the result
    kernel          ///< by the generated kernel
};

/// A launch of a conversion kernel (devices/convert_kernels.h).
struct MatmulConversion {
    const char *kernel;
    const void *from;
    void *to;
    uint32_t count;
    const void *factor; ///< NULL: none
    void *amax;         ///< NULL: none
};

/// A widened matmul: the call to cuBLASLt with the conversions before and after it.
struct WidenedMatmul {
    MatmulDesc desc;
    MatmulPointers pointers;
    MatmulConversion before[4]; ///< of lhs, rhs, bias and addend
    int32_t before_count;
    MatmulConversion after; ///< kernel == NULL: none
    uint64_t bytes;         ///< memory for converted arrays
};

/// The most launches and launch arguments that the conversions of a matmul add. A `clear_kernel` may precede `after`.
constexpr int32_t most_conversion_launches = 6, most_conversion_arguments = 5 * 5 + 1;

/// Describes a widened form of a matmul whose converted arrays are in `memory` (NULL: not known yet). Returns false if there is no such
/// form: the operands must be f8 with one scale or none.
bool widen(const MatmulDesc &asked, const MatmulPointers &pointers, MatmulForm form, void *memory, WidenedMatmul &widened);

} // namespace scalide

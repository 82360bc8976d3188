#pragma once
#include <cstdint>

/// Kernels of the runtime for matmuls that cuBLASLt refuses as f8 (bind/matmul_forms.h): they convert operands before a matmul and its
/// result after it. CUDA only. Any number of threads loops over the elements. The arguments are: from, to, number of elements (u32); then,
/// for narrowing kernels only (0: none), the address of an f32 by which each element is multiplied, and the address of the largest
/// magnitude before that, which `clear_kernel` must have set to 0.
namespace scalide {

/// Returns the PTX of the kernels, as DeviceDriver::load_module takes it.
const char *source_of_convert_kernels();

/// Returns the name of the kernel that converts f8 to bf16 or f16, or f16 or bf16 to f32. All of these are exact.
const char *widening_kernel(int32_t from, int32_t to);

/// Returns the name of the kernel that converts f32 to `to`, an f8, f16 or bf16, as cuBLASLt rounds D: f8 saturates, f16 and bf16 overflow
/// to infinity.
const char *narrowing_kernel(int32_t to);

/// Sets the f32 at its only argument to 0.
extern const char *const clear_kernel;

} // namespace scalide

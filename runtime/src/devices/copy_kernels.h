#pragma once
#include <cstdint>

/// Kernels of the runtime itself, for arrays with strides. One thread copies one element. The arguments are: from, to, number of elements
/// (u32), rank (u32), 8 extents (u32), 8 strides of `from` and 8 of `to` (i64, in elements). The innermost axis comes first.
namespace scalide {

/// Returns the source of the kernels for a kind of device (scalide_device), as DeviceDriver::load_module takes it.
const char *source_of_copy_kernels(int32_t kind);
/// Returns the name of the kernel for elements of 1, 2, 4 or 8 bytes.
const char *copy_kernel_for(int64_t element_bytes);

} // namespace scalide

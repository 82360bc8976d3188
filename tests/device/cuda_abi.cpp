// Compiles where our declarations of CUDA's driver are NVIDIA's.
#include "devices/cuda_abi.h"
#include <cuda.h>
#include <type_traits>

// Headers of CUDA 12.8 and later declare the second version under this name. Drivers have both, and the arguments are the same.
#ifdef cuEventElapsedTime
#undef cuEventElapsedTime
extern "C" decltype(cuEventElapsedTime_v2) cuEventElapsedTime;
#endif

namespace scalide {

namespace {

/// Scalide declares handles as pointers; CUDA declares structures. Arguments are passed the same way if their sizes and kinds are equal.
template<typename Ours, typename Theirs>
constexpr bool is_passed_alike = sizeof(Ours) == sizeof(Theirs) && std::is_pointer_v<Ours> == std::is_pointer_v<Theirs>;

template<typename Ours, typename Theirs>
constexpr bool is_called_alike = false;
template<typename... Ours, typename... Theirs>
requires(sizeof...(Ours) == sizeof...(Theirs)) constexpr bool is_called_alike<int32_t (*)(Ours...), CUresult (*)(Theirs...)> =
    (is_passed_alike<Ours, Theirs> && ...);

#define SCALIDE_SAME(name, arguments) static_assert(is_called_alike<decltype(CudaFunctions::name), decltype(&::name)>, #name);
SCALIDE_CUDA_FUNCTIONS(SCALIDE_SAME)
#undef SCALIDE_SAME

static_assert(sizeof(CUresult) == sizeof(int32_t) && sizeof(CUdevice) == sizeof(int32_t) && sizeof(CUdeviceptr) == sizeof(CuAddress));

#define SCALIDE_SAME(ours, theirs) static_assert(static_cast<int64_t>(ours) == static_cast<int64_t>(theirs), #theirs)
SCALIDE_SAME(cuda_success, CUDA_SUCCESS);
SCALIDE_SAME(cuda_out_of_memory, CUDA_ERROR_OUT_OF_MEMORY);
SCALIDE_SAME(cuda_no_binary, CUDA_ERROR_NO_BINARY_FOR_GPU);
SCALIDE_SAME(cuda_invalid_ptx, CUDA_ERROR_INVALID_PTX);
SCALIDE_SAME(cuda_old_for_ptx, CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
SCALIDE_SAME(cuda_threads_of_block, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
SCALIDE_SAME(cuda_grid_x, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X);
SCALIDE_SAME(cuda_grid_y, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y);
SCALIDE_SAME(cuda_grid_z, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z);
SCALIDE_SAME(cuda_shared_bytes, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
SCALIDE_SAME(cuda_major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
SCALIDE_SAME(cuda_minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
SCALIDE_SAME(cuda_dynamic_shared_bytes, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
SCALIDE_SAME(cuda_memory_type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE);
SCALIDE_SAME(cuda_is_managed, CU_POINTER_ATTRIBUTE_IS_MANAGED);
SCALIDE_SAME(cuda_device_ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL);
SCALIDE_SAME(cuda_host_memory, CU_MEMORYTYPE_HOST);
SCALIDE_SAME(cuda_error_log, CU_JIT_ERROR_LOG_BUFFER);
SCALIDE_SAME(cuda_error_log_bytes, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES);
SCALIDE_SAME(cuda_non_blocking, CU_STREAM_NON_BLOCKING);
SCALIDE_SAME(cuda_capture_thread_local, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);

} // namespace

} // namespace scalide

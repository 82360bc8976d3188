#pragma once
#include <cstddef>
#include <cstdint>

/// The part of the CUDA driver's interface (11.4 and later) that the runtime calls. It is declared here, because the driver is loaded at
/// run time and the toolkit may be missing.
namespace scalide {

using CuHandle = struct CuObject *; ///< contexts, streams, events, modules, functions and graphs
using CuAddress = uint64_t;         ///< an address in device memory

constexpr int32_t cuda_success = 0, cuda_out_of_memory = 2, cuda_no_binary = 209, cuda_invalid_ptx = 218, cuda_old_for_ptx = 222;
constexpr int32_t cuda_threads_of_block = 1, cuda_grid_x = 5, cuda_grid_y = 6, cuda_grid_z = 7, cuda_shared_bytes = 97, cuda_major = 75,
                  cuda_minor = 76;
constexpr int32_t cuda_dynamic_shared_bytes = 8; // attribute of a function
constexpr int32_t cuda_memory_type = 2, cuda_is_managed = 8, cuda_device_ordinal = 9;
constexpr uint32_t cuda_host_memory = 1;
constexpr int32_t cuda_error_log = 5, cuda_error_log_bytes = 6;
constexpr uint32_t cuda_non_blocking = 1;
constexpr int32_t cuda_capture_thread_local = 1;

// X(name, arguments); each returns an error code.
#define SCALIDE_CUDA_FUNCTIONS(X)                                                                                                          \
    X(cuInit, (uint32_t flags))                                                                                                            \
    X(cuGetErrorName, (int32_t error, const char **name))                                                                                  \
    X(cuGetErrorString, (int32_t error, const char **words))                                                                               \
    X(cuDeviceGetCount, (int32_t * count))                                                                                                 \
    X(cuDeviceGet, (int32_t * device, int32_t index))                                                                                      \
    X(cuDeviceGetName, (char *name, int32_t room, int32_t device))                                                                         \
    X(cuDeviceGetAttribute, (int32_t * value, int32_t what, int32_t device))                                                               \
    X(cuDevicePrimaryCtxRetain, (CuHandle * context, int32_t device))                                                                      \
    X(cuDevicePrimaryCtxRelease_v2, (int32_t device))                                                                                      \
    X(cuCtxPushCurrent_v2, (CuHandle context))                                                                                             \
    X(cuCtxPopCurrent_v2, (CuHandle * context))                                                                                            \
    X(cuStreamCreate, (CuHandle * stream, uint32_t flags))                                                                                 \
    X(cuStreamDestroy_v2, (CuHandle stream))                                                                                               \
    X(cuStreamGetCtx, (CuHandle stream, CuHandle * context))                                                                               \
    X(cuStreamSynchronize, (CuHandle stream))                                                                                              \
    X(cuMemAlloc_v2, (CuAddress * memory, size_t bytes))                                                                                   \
    X(cuMemFree_v2, (CuAddress memory))                                                                                                    \
    X(cuMemcpyHtoDAsync_v2, (CuAddress to, const void *from, size_t bytes, CuHandle stream))                                               \
    X(cuMemcpyDtoHAsync_v2, (void *to, CuAddress from, size_t bytes, CuHandle stream))                                                     \
    X(cuMemcpyDtoDAsync_v2, (CuAddress to, CuAddress from, size_t bytes, CuHandle stream))                                                 \
    X(cuMemsetD8Async, (CuAddress to, uint8_t value, size_t count, CuHandle stream))                                                       \
    X(cuMemsetD32Async, (CuAddress to, uint32_t value, size_t count, CuHandle stream))                                                     \
    X(cuPointerGetAttribute, (void *value, int32_t what, CuAddress memory))                                                                \
    X(cuModuleLoadDataEx, (CuHandle * module, const void *image, uint32_t count, int32_t *options, void **values))                         \
    X(cuModuleUnload, (CuHandle module))                                                                                                   \
    X(cuModuleGetFunction, (CuHandle * function, CuHandle module, const char *name))                                                       \
    X(cuFuncSetAttribute, (CuHandle function, int32_t what, int32_t value))                                                                \
    X(cuLaunchKernel, (CuHandle function, uint32_t blocks_x, uint32_t blocks_y, uint32_t blocks_z, uint32_t threads_x, uint32_t threads_y, \
                       uint32_t threads_z, uint32_t shared_bytes, CuHandle stream, void **arguments, void **extra))                        \
    X(cuEventCreate, (CuHandle * event, uint32_t flags))                                                                                   \
    X(cuEventRecord, (CuHandle event, CuHandle stream))                                                                                    \
    X(cuEventSynchronize, (CuHandle event))                                                                                                \
    X(cuEventElapsedTime, (float *milliseconds, CuHandle begin, CuHandle end))                                                             \
    X(cuEventDestroy_v2, (CuHandle event))                                                                                                 \
    X(cuStreamBeginCapture_v2, (CuHandle stream, int32_t mode))                                                                            \
    X(cuStreamEndCapture, (CuHandle stream, CuHandle * graph))                                                                             \
    X(cuGraphInstantiateWithFlags, (CuHandle * executable, CuHandle graph, uint64_t flags))                                                \
    X(cuGraphDestroy, (CuHandle graph))                                                                                                    \
    X(cuGraphExecDestroy, (CuHandle executable))                                                                                           \
    X(cuGraphLaunch, (CuHandle executable, CuHandle stream))

struct CudaFunctions {
#define SCALIDE_DECLARE(name, arguments) int32_t(*name) arguments;
    SCALIDE_CUDA_FUNCTIONS(SCALIDE_DECLARE)
#undef SCALIDE_DECLARE
};

} // namespace scalide

#pragma once
#include <cstddef>
#include <cstdint>

/// The part of the OpenCL 2.0 interface that the runtime calls. It is declared here because the library is loaded at run time and the
/// headers may be missing.
namespace scalide {

using ClHandle = struct ClObject *; ///< platforms, devices, contexts, queues, programs and kernels

constexpr int32_t cl_success = 0, cl_memory_failure = -4, cl_out_of_host_memory = -6;
constexpr uint32_t cl_false = 0, cl_true = 1;
constexpr uint64_t cl_device_type_all = 0xffffffff, cl_read_write = 1, cl_svm_coarse = 1;
constexpr uint32_t cl_max_work_group_size = 0x1004, cl_max_constant_bytes = 0x1020, cl_max_constant_arguments = 0x1021,
                   cl_local_bytes = 0x1023, cl_device_name = 0x102b, cl_svm_capabilities = 0x1053;
constexpr uint32_t cl_queue_context = 0x1090, cl_queue_device = 0x1091, cl_build_log = 0x1183;

// X(result, name, arguments)
#define SCALIDE_OPENCL_FUNCTIONS(X)                                                                                                        \
    X(int32_t, clGetPlatformIDs, (uint32_t room, ClHandle * platforms, uint32_t * count))                                                  \
    X(int32_t, clGetDeviceIDs, (ClHandle platform, uint64_t type, uint32_t room, ClHandle * devices, uint32_t * count))                    \
    X(int32_t, clGetDeviceInfo, (ClHandle device, uint32_t what, size_t room, void *value, size_t *size))                                  \
    X(ClHandle, clCreateContext,                                                                                                           \
      (const intptr_t *properties, uint32_t count, const ClHandle *devices, void *notify, void *user, int32_t *error))                     \
    X(int32_t, clRetainContext, (ClHandle context))                                                                                        \
    X(int32_t, clReleaseContext, (ClHandle context))                                                                                       \
    X(ClHandle, clCreateCommandQueueWithProperties, (ClHandle context, ClHandle device, const uint64_t *properties, int32_t *error))       \
    X(int32_t, clRetainCommandQueue, (ClHandle queue))                                                                                     \
    X(int32_t, clReleaseCommandQueue, (ClHandle queue))                                                                                    \
    X(int32_t, clGetCommandQueueInfo, (ClHandle queue, uint32_t what, size_t room, void *value, size_t *size))                             \
    X(int32_t, clFinish, (ClHandle queue))                                                                                                 \
    X(void *, clSVMAlloc, (ClHandle context, uint64_t flags, size_t bytes, uint32_t alignment))                                            \
    X(void, clSVMFree, (ClHandle context, void *memory))                                                                                   \
    X(int32_t, clEnqueueSVMMemcpy,                                                                                                         \
      (ClHandle queue, uint32_t wait, void *to, const void *from, size_t bytes, uint32_t count, const void *before, void *event))          \
    X(int32_t, clEnqueueSVMMemFill,                                                                                                        \
      (ClHandle queue, void *to, const void *pattern, size_t pattern_bytes, size_t bytes, uint32_t count, const void *before,              \
       void *event))                                                                                                                       \
    X(ClHandle, clCreateProgramWithSource, (ClHandle context, uint32_t count, const char **texts, const size_t *lengths, int32_t *error))  \
    X(int32_t, clBuildProgram, (ClHandle program, uint32_t count, const ClHandle *devices, const char *options, void *notify, void *user)) \
    X(int32_t, clGetProgramBuildInfo, (ClHandle program, ClHandle device, uint32_t what, size_t room, void *value, size_t *size))          \
    X(int32_t, clReleaseProgram, (ClHandle program))                                                                                       \
    X(ClHandle, clCreateKernel, (ClHandle program, const char *name, int32_t *error))                                                      \
    X(int32_t, clReleaseKernel, (ClHandle kernel))                                                                                         \
    X(int32_t, clSetKernelArg, (ClHandle kernel, uint32_t index, size_t bytes, const void *value))                                         \
    X(int32_t, clSetKernelArgSVMPointer, (ClHandle kernel, uint32_t index, const void *memory))                                            \
    X(int32_t, clEnqueueNDRangeKernel,                                                                                                     \
      (ClHandle queue, ClHandle kernel, uint32_t rank, const size_t *offset, const size_t *global, const size_t *local, uint32_t count,    \
       const void *before, void *event))                                                                                                   \
    X(int32_t, clFlush, (ClHandle queue))

struct OpenClFunctions {
#define SCALIDE_DECLARE(result, name, arguments) result(*name) arguments;
    SCALIDE_OPENCL_FUNCTIONS(SCALIDE_DECLARE)
#undef SCALIDE_DECLARE
};

} // namespace scalide

#pragma once
#include "base/text.h"
#include "cublaslt/cublaslt.h"
#include "scalide/scalide.h"
#include <cstdint>

namespace scalide {

/// An argument of a kernel launch: a value of `bytes` bytes, or an address in device memory.
struct LaunchArgument {
    uint64_t value;
    uint32_t bytes;
    bool is_address;
};

/// Loaded device code of a kernel. The bindings of a context share it.
struct Module {
    Module *next;
    const char *source; ///< its address in the library
    void *handle;       ///< the driver's handle
    int32_t users;      ///< number of launches that use it
};

/// One launch of a function on the device.
struct Launch {
    Module *module; ///< NULL before the first `prepare`
    const char *name;
    uint32_t blocks[3], threads[3], shared_bytes;
    uint32_t argument_count;
    LaunchArgument *arguments;
    void **values;  ///< addresses of the arguments' values
    void *function; ///< the driver's handle; NULL before the first `prepare`
    void *matmul;   ///< the call of a library that replaces the function; NULL: the function runs
};

/// The limits of a device.
struct DeviceLimits {
    uint32_t blocks[3], threads, shared_bytes;
};

struct DeviceDriver;

/// A device with a queue, in which copies and launches run in order. Each driver's own structure begins with this one.
struct Device {
    const DeviceDriver *driver;
    DeviceLimits limits;
    char name[128];            ///< as the driver reports it
    int32_t capability;        ///< CUDA: 90 for sm_90; 0 for other kinds
    uint64_t matmul_workspace; ///< size of the workspace of a matmul in bytes
    char failure[1024];        ///< message of the last failure, without a final stop: "cuLaunchKernel must succeed, got CUDA_ERROR_..."
};

/// The functions of a kind of device. If a function returns an error status, it writes a message to the device's `failure`. Any thread may
/// call the functions, but only one at a time.
struct DeviceDriver {
    int32_t kind; ///< scalide_device
    scalide_status (*allocate)(Device &device, uint64_t bytes, void **memory);
    void (*release)(Device &device, void *memory);
    scalide_status (*copy_in)(Device &device, void *to, const void *from, uint64_t bytes);
    scalide_status (*copy_out)(Device &device, void *to, const void *from, uint64_t bytes);
    /// Append a copy within the memory of the device to the queue, or `count` copies of a value of 1 or 4 bytes.
    scalide_status (*copy)(Device &device, void *to, const void *from, uint64_t bytes);
    scalide_status (*fill)(Device &device, void *to, uint32_t value, uint32_t bytes_of_value, uint64_t count);
    scalide_status (*synchronise)(Device &device);
    /// False if the driver knows that this is not memory of the device.
    bool (*holds)(Device &device, const void *memory);

    scalide_status (*load_module)(Device &device, const char *source, void **module);
    void (*unload_module)(Device &device, void *module);
    /// Finds the function and reads the arguments. It is called again after the arguments have changed.
    scalide_status (*prepare)(Device &device, Launch &launch);
    void (*forget)(Device &device, Launch &launch);
    /// False, with the reason in `failure`, if no library computes this matmul. This function and the next two are NULL if this kind of
    /// device has no library.
    bool (*accepts_matmul)(Device &device, const MatmulDesc &desc);
    /// Creates the call of a matmul and runs it once as a test. If *matmul is a call, gives it other arrays. Returns SCALIDE_UNSUPPORTED if
    /// the library cannot compute the matmul.
    scalide_status (*prepare_matmul)(Device &device, const MatmulDesc &desc, const MatmulPointers &pointers, void **matmul);
    void (*forget_matmul)(Device &device, void *matmul);

    /// Appends all launches to the queue. *done is the number of launches before the first failure.
    scalide_status (*launch)(Device &device, const Launch *launches, int32_t count, int32_t *done);

    /// Launches, waits for the end and sets *seconds to the time between two events of the device, one in front of the launches and one
    /// behind them. NULL: this kind of device has no events.
    scalide_status (*time)(Device &device, const Launch *launches, int32_t count, int32_t *done, double *seconds);

    /// Captures what run(data) appends to the queue as one graph, which `replay` appends again. NULL: this kind of device has no graphs.
    scalide_status (*capture)(Device &device, scalide_status (*run)(void *data), void *data, void **graph);
    scalide_status (*replay)(Device &device, void *graph);
    void (*release_graph)(Device &device, void *graph);

    void (*close)(Device &device);
};

/// Returns a suggested fix for a failure.
inline const char *way_out(scalide_status status) {
    switch (status) {
    case SCALIDE_OUT_OF_MEMORY: return "Bind smaller arrays, or release memory.";
    case SCALIDE_WRONG_DEVICE: return "Build the program for this device.";
    case SCALIDE_UNSUPPORTED: return "Change the matmul, or require no libraries.";
    default: return "Create the context again.";
    }
}

inline Text start_failure(Device &device) { return Text(device.failure, sizeof(device.failure)); }

/// Each function opens a device. On failure it writes a complete message to `failure`.
scalide_status open_opencl(const scalide_options &options, Device **device, Text &failure);
scalide_status open_cuda(const scalide_options &options, Device **device, Text &failure);

} // namespace scalide

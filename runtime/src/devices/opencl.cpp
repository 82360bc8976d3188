// OpenCL: runs whole plans on any device that has a driver. It is meant for tests and experiments. Buffers are shared virtual memory, so an
// address is a number to which an offset can be added, as on CUDA.
#include "base/memory.h"
#include "devices/device.h"
#include "devices/opencl_abi.h"
#include <dlfcn.h>
#include <new>

namespace scalide {

namespace {

struct OpenCl : Device {
    OpenClFunctions cl;
    ClHandle handle, context, queue;
    uint64_t constant_bytes;
    uint32_t constant_arguments;
};

OpenCl &self(Device &device) { return static_cast<OpenCl &>(device); }

struct ErrorName {
    int32_t code;
    const char *name;
};
// The errors that users are likely to see.
constexpr ErrorName error_names[] = {
    {cl_memory_failure, "CL_MEM_OBJECT_ALLOCATION_FAILURE"},
    {-5, "CL_OUT_OF_RESOURCES"},
    {cl_out_of_host_memory, "CL_OUT_OF_HOST_MEMORY"},
    {-11, "CL_BUILD_PROGRAM_FAILURE"},
    {-46, "CL_INVALID_KERNEL_NAME"},
    {-54, "CL_INVALID_WORK_GROUP_SIZE"},
    {-1001, "CL_PLATFORM_NOT_FOUND_KHR"},
};

Text &operator<<(Text &text, const ErrorName &error) {
    for (const ErrorName &row : error_names) {
        if (row.code == error.code) return text << row.name;
    }
    return text << "OpenCL error " << error.code;
}

scalide_status status_of(int32_t error) {
    const bool memory = error == cl_memory_failure || error == cl_out_of_host_memory;
    return error == cl_success ? SCALIDE_OK : memory ? SCALIDE_OUT_OF_MEMORY : SCALIDE_DEVICE_FAILED;
}

/// Returns the status of a call, with a message if it failed.
scalide_status check(OpenCl &device, const char *call, int32_t error) {
    if (error != cl_success) {
        Text text = start_failure(device);
        text << call << " failed: " << ErrorName{error, nullptr};
    }
    return status_of(error);
}

scalide_status allocate(Device &device, uint64_t bytes, void **memory) {
    OpenCl &opencl = self(device);
    *memory = opencl.cl.clSVMAlloc(opencl.context, cl_read_write, bytes, 0);
    return check(opencl, "clSVMAlloc", *memory ? cl_success : cl_memory_failure);
}

void release(Device &device, void *memory) { self(device).cl.clSVMFree(self(device).context, memory); }

scalide_status append_copy(Device &device, uint32_t waits, void *to, const void *from, uint64_t bytes) {
    OpenCl &opencl = self(device);
    return check(opencl, "clEnqueueSVMMemcpy", opencl.cl.clEnqueueSVMMemcpy(opencl.queue, waits, to, from, bytes, 0, nullptr, nullptr));
}

/// Copies between the host and the device, and waits.
scalide_status copy_and_wait(Device &device, void *to, const void *from, uint64_t bytes) {
    return append_copy(device, cl_true, to, from, bytes);
}

scalide_status copy(Device &device, void *to, const void *from, uint64_t bytes) { return append_copy(device, cl_false, to, from, bytes); }

scalide_status fill(Device &device, void *to, uint32_t value, uint32_t bytes_of_value, uint64_t count) {
    OpenCl &opencl = self(device);
    return check(opencl, "clEnqueueSVMMemFill",
                 opencl.cl.clEnqueueSVMMemFill(opencl.queue, to, &value, bytes_of_value, bytes_of_value * count, 0, nullptr, nullptr));
}

scalide_status synchronise(Device &device) { return check(self(device), "clFinish", self(device).cl.clFinish(self(device).queue)); }

bool holds(Device &, const void *) { return true; }

scalide_status complain_about_build(OpenCl &opencl, ClHandle program, int32_t error) {
    char log[sizeof(opencl.failure) / 2] = ""; // OpenCL returns the whole log or nothing
    opencl.cl.clGetProgramBuildInfo(program, opencl.handle, cl_build_log, sizeof(log) - 1, log, nullptr);
    Text text = start_failure(opencl);
    text << "clBuildProgram failed: " << ErrorName{error, nullptr} << ' ' << log;
    return status_of(error);
}

scalide_status load_module(Device &device, const char *source, void **module) {
    OpenCl &opencl = self(device);
    int32_t error;
    ClHandle program = opencl.cl.clCreateProgramWithSource(opencl.context, 1, &source, nullptr, &error);
    if (!program) return check(opencl, "clCreateProgramWithSource", error);
    // The options that Halide's sources require.
    char options[128];
    Text(options, sizeof(options)) << "-D MAX_CONSTANT_BUFFER_SIZE=" << opencl.constant_bytes
                                   << " -D MAX_CONSTANT_ARGS=" << uint64_t(opencl.constant_arguments);
    error = opencl.cl.clBuildProgram(program, 1, &opencl.handle, options, nullptr, nullptr);
    if (error != cl_success) {
        const scalide_status status = complain_about_build(opencl, program, error);
        opencl.cl.clReleaseProgram(program);
        return status;
    }
    *module = program;
    return SCALIDE_OK;
}

void unload_module(Device &device, void *module) { self(device).cl.clReleaseProgram(static_cast<ClHandle>(module)); }

// A kernel object holds its arguments, so each launch has its own kernel object.
scalide_status prepare(Device &device, Launch &launch) {
    OpenCl &opencl = self(device);
    int32_t error = cl_success;
    if (!launch.function) launch.function = opencl.cl.clCreateKernel(static_cast<ClHandle>(launch.module->handle), launch.name, &error);
    if (!launch.function) return check(opencl, "clCreateKernel", error);
    auto *kernel = static_cast<ClHandle>(launch.function);
    for (uint32_t i = 0; error == cl_success && i < launch.argument_count; ++i) {
        const LaunchArgument &argument = launch.arguments[i];
        error = argument.is_address ? opencl.cl.clSetKernelArgSVMPointer(kernel, i, reinterpret_cast<void *>(argument.value))
                                    : opencl.cl.clSetKernelArg(kernel, i, argument.bytes, &argument.value);
    }
    const uint32_t shared = launch.shared_bytes > 0 ? launch.shared_bytes : 1; // Halide's kernels always have this argument
    if (error == cl_success) error = opencl.cl.clSetKernelArg(kernel, launch.argument_count, shared, nullptr);
    return check(opencl, "clSetKernelArg", error);
}

void forget(Device &device, Launch &launch) { self(device).cl.clReleaseKernel(static_cast<ClHandle>(launch.function)); }

scalide_status launch(Device &device, const Launch *launches, int32_t count, int32_t *done) {
    OpenCl &opencl = self(device);
    for (*done = 0; *done < count; ++*done) {
        const Launch &one = launches[*done];
        size_t global[3], local[3];
        for (int i = 0; i < 3; ++i) {
            local[i] = one.threads[i];
            global[i] = local[i] * one.blocks[i];
        }
        const int32_t error = opencl.cl.clEnqueueNDRangeKernel(opencl.queue, static_cast<ClHandle>(one.function), 3, nullptr, global, local,
                                                               0, nullptr, nullptr);
        if (error != cl_success) return check(opencl, "clEnqueueNDRangeKernel", error);
    }
    return check(opencl, "clFlush", opencl.cl.clFlush(opencl.queue));
}

void close(Device &device) {
    OpenCl &opencl = self(device);
    if (opencl.queue) opencl.cl.clReleaseCommandQueue(opencl.queue);
    if (opencl.context) opencl.cl.clReleaseContext(opencl.context);
    scalide::release(&opencl);
}

constexpr DeviceDriver driver = {SCALIDE_OPENCL, allocate,    release,       copy_and_wait, copy_and_wait, copy,    fill,    synchronise,
                                 holds,          load_module, unload_module, prepare,       forget,        nullptr, nullptr, nullptr,
                                 launch,         nullptr,     nullptr,       nullptr,       nullptr,       close};

// The library stays loaded, because its threads may outlive a device.
const char *load(OpenClFunctions &cl, void *library) {
#define SCALIDE_LOAD(result, name, arguments)                                                                                              \
    if (!(cl.name = reinterpret_cast<decltype(cl.name)>(dlsym(library, #name)))) return #name;
    SCALIDE_OPENCL_FUNCTIONS(SCALIDE_LOAD)
#undef SCALIDE_LOAD
    return nullptr;
}

constexpr uint32_t most_platforms = 16, most_devices = 16;

/// Returns the device of this number, counted over all platforms. If there is none, returns NULL and the number of devices.
ClHandle find_device(const OpenClFunctions &cl, int32_t index, int32_t *count) {
    ClHandle platforms[most_platforms], devices[most_devices];
    uint32_t platform_count = 0;
    *count = 0;
    if (cl.clGetPlatformIDs(most_platforms, platforms, &platform_count) != cl_success) return nullptr;
    for (uint32_t i = 0; i < platform_count && i < most_platforms; ++i) {
        uint32_t here = 0;
        if (cl.clGetDeviceIDs(platforms[i], cl_device_type_all, most_devices, devices, &here) != cl_success) continue;
        if (index - *count < static_cast<int32_t>(here)) return devices[index - *count];
        *count += static_cast<int32_t>(here);
    }
    return nullptr;
}

// Devices of older OpenCL versions do not know this query.
bool has_shared_memory(const OpenCl &opencl) {
    uint64_t capabilities = 0;
    const int32_t error = opencl.cl.clGetDeviceInfo(opencl.handle, cl_svm_capabilities, sizeof(capabilities), &capabilities, nullptr);
    return error == cl_success && (capabilities & cl_svm_coarse) != 0;
}

scalide_status read_facts(OpenCl &opencl) {
    size_t threads = 0;
    uint64_t shared = 0;
    const struct {
        uint32_t what;
        size_t bytes;
        void *fact;
    } rows[] = {{cl_max_constant_bytes, sizeof(opencl.constant_bytes), &opencl.constant_bytes},
                {cl_max_constant_arguments, sizeof(opencl.constant_arguments), &opencl.constant_arguments},
                {cl_max_work_group_size, sizeof(threads), &threads},
                {cl_local_bytes, sizeof(shared), &shared}};
    for (const auto &row : rows) {
        const int32_t error = opencl.cl.clGetDeviceInfo(opencl.handle, row.what, row.bytes, row.fact, nullptr);
        if (error != cl_success) return check(opencl, "clGetDeviceInfo", error);
    }
    opencl.cl.clGetDeviceInfo(opencl.handle, cl_device_name, sizeof(opencl.name) - 1, opencl.name, nullptr); // "" if the name is longer
    opencl.limits = {{INT32_MAX, INT32_MAX, INT32_MAX}, static_cast<uint32_t>(threads), static_cast<uint32_t>(shared)};
    return SCALIDE_OK;
}

// The caller's queue determines the device and the context. Only what the runtime has retained may be released.
scalide_status adopt_queue(OpenCl &opencl, void *queue) {
    auto *given = static_cast<ClHandle>(queue);
    ClHandle context = nullptr;
    int32_t error = opencl.cl.clGetCommandQueueInfo(given, cl_queue_device, sizeof(opencl.handle), &opencl.handle, nullptr);
    if (error == cl_success) error = opencl.cl.clGetCommandQueueInfo(given, cl_queue_context, sizeof(context), &context, nullptr);
    if (error != cl_success) return check(opencl, "clGetCommandQueueInfo", error);
    error = opencl.cl.clRetainContext(context);
    if (error != cl_success) return check(opencl, "clRetainContext", error);
    opencl.context = context;
    error = opencl.cl.clRetainCommandQueue(given);
    if (error != cl_success) return check(opencl, "clRetainCommandQueue", error);
    opencl.queue = given;
    return SCALIDE_OK;
}

scalide_status make_queue(OpenCl &opencl) {
    int32_t error;
    opencl.context = opencl.cl.clCreateContext(nullptr, 1, &opencl.handle, nullptr, nullptr, &error);
    if (!opencl.context) return check(opencl, "clCreateContext", error);
    opencl.queue = opencl.cl.clCreateCommandQueueWithProperties(opencl.context, opencl.handle, nullptr, &error);
    return check(opencl, "clCreateCommandQueueWithProperties", opencl.queue ? cl_success : error);
}

/// Chooses a device, or reports what is missing on this machine.
scalide_status choose_device(OpenCl &opencl, int32_t index, Text &failure) {
    int32_t count = 0;
    opencl.handle = find_device(opencl.cl, index, &count);
    if (opencl.handle) return SCALIDE_OK;
    if (count == 0) {
        failure << "no OpenCL device found. Install a driver (for CPUs: pocl-opencl-icd).";
    } else {
        failure << "device_index must be less than the number of OpenCL devices, " << count << ", got " << index << '.';
    }
    return SCALIDE_NO_DEVICE;
}

scalide_status start(OpenCl &opencl, const scalide_options &options, Text &failure) {
    scalide_status status = options.stream ? adopt_queue(opencl, options.stream) : choose_device(opencl, options.device_index, failure);
    if (status == SCALIDE_NO_DEVICE) return status;
    if (status == SCALIDE_OK && !has_shared_memory(opencl)) {
        failure << "the OpenCL device does not support shared virtual memory. Choose another device.";
        return SCALIDE_NO_DEVICE;
    }
    if (status == SCALIDE_OK && !options.stream) status = make_queue(opencl);
    if (status == SCALIDE_OK) status = read_facts(opencl);
    if (status != SCALIDE_OK) failure << opencl.failure << ". Choose another device.";
    return status;
}

} // namespace

scalide_status open_opencl(const scalide_options &options, Device **result, Text &failure) {
    void *library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        failure << "cannot load OpenCL: " << dlerror() << ". Install ocl-icd-libopencl1 and a driver.";
        return SCALIDE_NO_DEVICE;
    }
    void *memory = scalide::allocate(sizeof(OpenCl));
    if (!memory) return SCALIDE_OUT_OF_MEMORY;
    auto *opencl = new (memory) OpenCl{};
    *result = opencl;
    opencl->driver = &driver;
    if (const char *name = load(opencl->cl, library)) {
        failure << "libOpenCL.so.1 has no function " << name << ". Install a version with OpenCL 2.0.";
        return SCALIDE_NO_DEVICE;
    }
    return start(*opencl, options, failure);
}

} // namespace scalide

// CUDA through its driver API. It uses the device's primary context, and either the caller's stream or a stream of its own. The context is
// current in the caller's thread only during a call of this runtime.
#include "base/memory.h"
#include "cublaslt/cuda_matmuls.h"
#include "devices/cuda_abi.h"
#include "devices/device.h"
#include <dlfcn.h>
#include <new>

namespace scalide {

namespace {

struct Cuda : Device {
    CudaFunctions cu;
    int32_t ordinal;
    CuHandle context, stream;
    bool owns_stream;
    CuAddress units; ///< the FP32 numbers 0 and 1, for matmuls with a factor
    CudaMatmuls matmuls;
};

Cuda &self(Device &device) { return static_cast<Cuda &>(device); }

CuAddress address(const void *memory) { return reinterpret_cast<uintptr_t>(memory); }

class Current {
public:
    explicit Current(Cuda &cuda) : cuda_(cuda), error(cuda.cu.cuCtxPushCurrent_v2(cuda.context)) {}
    Current(const Current &) = delete;
    Current &operator=(const Current &) = delete;
    ~Current() {
        CuHandle ours;
        if (error == cuda_success) cuda_.cu.cuCtxPopCurrent_v2(&ours);
    }

private:
    Cuda &cuda_;

public:
    const int32_t error;
};

Text &print_error(Text &text, const Cuda &cuda, int32_t error) {
    const char *name = nullptr, *words = nullptr;
    cuda.cu.cuGetErrorName(error, &name);
    cuda.cu.cuGetErrorString(error, &words);
    if (!name) return text << "CUDA error " << error;
    return text << name << " (" << (words ? words : "no words") << ')';
}

scalide_status status_of(int32_t error) {
    switch (error) {
    case cuda_success: return SCALIDE_OK;
    case cuda_out_of_memory: return SCALIDE_OUT_OF_MEMORY;
    case cuda_no_binary:
    case cuda_invalid_ptx:
    case cuda_old_for_ptx: return SCALIDE_WRONG_DEVICE;
    default: return SCALIDE_DEVICE_FAILED;
    }
}

/// Returns the status of a call, with the driver's message if it failed.
scalide_status check(Cuda &cuda, const char *call, int32_t error) {
    if (error != cuda_success) {
        Text text = start_failure(cuda);
        print_error(text << call << " failed: ", cuda, error);
    }
    return status_of(error);
}

/// Calls the function of the driver with the device's context current.
template<typename... Parameters, typename... Arguments>
scalide_status call(Cuda &cuda, const char *name, int32_t (*function)(Parameters...), Arguments... arguments) {
    const Current current(cuda);
    return current.error == cuda_success ? check(cuda, name, function(arguments...)) : check(cuda, "cuCtxPushCurrent", current.error);
}

scalide_status allocate(Device &device, uint64_t bytes, void **memory) {
    CuAddress place = 0;
    const scalide_status status = call(self(device), "cuMemAlloc", self(device).cu.cuMemAlloc_v2, &place, bytes);
    *memory = reinterpret_cast<void *>(place);
    return status;
}

void release(Device &device, void *memory) { call(self(device), "cuMemFree", self(device).cu.cuMemFree_v2, address(memory)); }

scalide_status synchronise(Device &device) {
    return call(self(device), "cuStreamSynchronize", self(device).cu.cuStreamSynchronize, self(device).stream);
}

scalide_status copy_in(Device &device, void *to, const void *from, uint64_t bytes) {
    Cuda &cuda = self(device);
    const scalide_status status = call(cuda, "cuMemcpyHtoDAsync", cuda.cu.cuMemcpyHtoDAsync_v2, address(to), from, bytes, cuda.stream);
    return status == SCALIDE_OK ? synchronise(device) : status;
}

scalide_status copy_out(Device &device, void *to, const void *from, uint64_t bytes) {
    Cuda &cuda = self(device);
    const scalide_status status = call(cuda, "cuMemcpyDtoHAsync", cuda.cu.cuMemcpyDtoHAsync_v2, to, address(from), bytes, cuda.stream);
    return status == SCALIDE_OK ? synchronise(device) : status;
}

scalide_status copy(Device &device, void *to, const void *from, uint64_t bytes) {
    Cuda &cuda = self(device);
    return call(cuda, "cuMemcpyDtoDAsync", cuda.cu.cuMemcpyDtoDAsync_v2, address(to), address(from), bytes, cuda.stream);
}

scalide_status fill(Device &device, void *to, uint32_t value, uint32_t bytes_of_value, uint64_t count) {
    Cuda &cuda = self(device);
    if (bytes_of_value == sizeof(uint32_t))
        return call(cuda, "cuMemsetD32Async", cuda.cu.cuMemsetD32Async, address(to), value, count, cuda.stream);
    return call(cuda, "cuMemsetD8Async", cuda.cu.cuMemsetD8Async, address(to), static_cast<uint8_t>(value), count, cuda.stream);
}

// The driver returns an error for an address that it does not know. Managed memory is on every device.
bool holds(Device &device, const void *memory) {
    Cuda &cuda = self(device);
    const Current current(cuda);
    uint32_t type = 0, managed = 0;
    int32_t ordinal = -1;
    if (cuda.cu.cuPointerGetAttribute(&type, cuda_memory_type, address(memory)) != cuda_success) return false;
    if (cuda.cu.cuPointerGetAttribute(&managed, cuda_is_managed, address(memory)) == cuda_success && managed) return true;
    cuda.cu.cuPointerGetAttribute(&ordinal, cuda_device_ordinal, address(memory));
    return type != cuda_host_memory && ordinal == cuda.ordinal;
}

scalide_status load_module(Device &device, const char *image, void **module) {
    Cuda &cuda = self(device);
    char log[sizeof(device.failure) / 2] = "";
    int32_t options[] = {cuda_error_log, cuda_error_log_bytes};
    void *values[] = {log, reinterpret_cast<void *>(sizeof(log) - 1)}; // this option's number is passed in place of the pointer
    CuHandle loaded = nullptr;
    const scalide_status status = call(cuda, "cuModuleLoadDataEx", cuda.cu.cuModuleLoadDataEx, &loaded, image, 2u, options, values);
    if (status != SCALIDE_OK && log[0]) {
        char error[sizeof(device.failure) / 2];
        Text(error, sizeof(error)) << device.failure;
        start_failure(device) << error << ' ' << log;
    }
    *module = loaded;
    return status;
}

void unload_module(Device &device, void *module) {
    call(self(device), "cuModuleUnload", self(device).cu.cuModuleUnload, static_cast<CuHandle>(module));
}

constexpr uint32_t shared_bytes_without_asking = 48 << 10;

scalide_status prepare(Device &device, Launch &launch) {
    if (launch.function) return SCALIDE_OK; // the arguments are read at each launch
    Cuda &cuda = self(device);
    CuHandle function = nullptr;
    scalide_status status = call(cuda, "cuModuleGetFunction", cuda.cu.cuModuleGetFunction, &function,
                                 static_cast<CuHandle>(launch.module->handle), launch.name);
    if (status == SCALIDE_OK && launch.shared_bytes > shared_bytes_without_asking) {
        status = call(cuda, "cuFuncSetAttribute", cuda.cu.cuFuncSetAttribute, function, cuda_dynamic_shared_bytes,
                      static_cast<int32_t>(launch.shared_bytes));
    }
    launch.function = status == SCALIDE_OK ? function : nullptr;
    return status;
}

void forget(Device &, Launch &) {} // the driver releases functions together with their module

bool accepts_matmul(Device &device, const MatmulDesc &desc) {
    const Current current(self(device));
    Text failure = start_failure(device);
    return self(device).matmuls.accepts(desc, failure);
}

bool synchronise_for_matmul(void *cuda) { return synchronise(*static_cast<Cuda *>(cuda)) == SCALIDE_OK; }

scalide_status make_units(Cuda &cuda) {
    constexpr float units[] = {0, 1};
    if (cuda.units) return SCALIDE_OK;
    void *memory = nullptr;
    const scalide_status status = allocate(cuda, sizeof(units), &memory);
    cuda.units = address(memory);
    return status == SCALIDE_OK ? copy_in(cuda, memory, units, sizeof(units)) : status;
}

/// Creates a call whose search for an algorithm would overwrite data that a run reads. The search writes amax and D to temporary memory
/// instead.
Matmul *make_elsewhere(Cuda &cuda, const MatmulDesc &desc, const MatmulPointers &pointers, const MatmulStream &where) {
    constexpr uint64_t before = 256; // an alignment that no algorithm exceeds
    const int64_t elements = (desc.batch - 1) * desc.d.batch_stride + desc.m * desc.d.leading;
    void *memory = nullptr;
    if (allocate(cuda, before + static_cast<uint64_t>(elements) * scalide_dtype_size(desc.d.dtype), &memory) != SCALIDE_OK) return nullptr;
    MatmulPointers elsewhere = pointers;
    elsewhere.d = static_cast<char *>(memory) + before;
    if (pointers.amax) elsewhere.amax = memory;
    Text failure = start_failure(cuda);
    Matmul *matmul = cuda.matmuls.make(desc, elsewhere, where, failure);
    release(cuda, memory);
    if (matmul && matmul->set_pointers(pointers, failure)) return matmul;
    if (matmul) CudaMatmuls::destroy(matmul);
    return nullptr;
}

scalide_status prepare_matmul(Device &device, const MatmulDesc &desc, const MatmulPointers &given, void **result) {
    Cuda &cuda = self(device);
    const scalide_status made = make_units(cuda);
    if (made != SCALIDE_OK) return made;
    const Current current(cuda);
    if (current.error != cuda_success) return check(cuda, "cuCtxPushCurrent", current.error);
    MatmulPointers pointers = given;
    pointers.zero = reinterpret_cast<const float *>(cuda.units);
    pointers.one = reinterpret_cast<const float *>(cuda.units) + 1;
    Text failure = start_failure(device);
    if (*result) return static_cast<Matmul *>(*result)->set_pointers(pointers, failure) ? SCALIDE_OK : SCALIDE_DEVICE_FAILED;
    const MatmulStream where = {nullptr, cuda.stream, &cuda, synchronise_for_matmul};
    *result = pointers.overwrites ? make_elsewhere(cuda, desc, pointers, where) : cuda.matmuls.make(desc, pointers, where, failure);
    return *result ? SCALIDE_OK : SCALIDE_UNSUPPORTED;
}

void forget_matmul(Device &device, void *matmul) {
    const Current current(self(device));
    CudaMatmuls::destroy(static_cast<Matmul *>(matmul));
}

scalide_status run_matmul(Cuda &cuda, const Matmul &matmul) {
    const cublaslt::Status error = cuda.matmuls.run(matmul, cuda.stream);
    if (error != 0) start_failure(cuda) << "cublasLtMatmul failed: " << matmul.name_of(error);
    return error == 0 ? SCALIDE_OK : SCALIDE_DEVICE_FAILED;
}

scalide_status launch_function(Cuda &cuda, const Launch &one) {
    return check(cuda, "cuLaunchKernel",
                 cuda.cu.cuLaunchKernel(static_cast<CuHandle>(one.function), one.blocks[0], one.blocks[1], one.blocks[2], one.threads[0],
                                        one.threads[1], one.threads[2], one.shared_bytes, cuda.stream, one.values, nullptr));
}

scalide_status launch_all(Cuda &cuda, const Launch *launches, int32_t count, int32_t *done) {
    scalide_status status = SCALIDE_OK;
    for (*done = 0; *done < count; ++*done) {
        const Launch &one = launches[*done];
        status = one.matmul ? run_matmul(cuda, *static_cast<const Matmul *>(one.matmul)) : launch_function(cuda, one);
        if (status != SCALIDE_OK) break;
    }
    return status;
}

scalide_status launch(Device &device, const Launch *launches, int32_t count, int32_t *done) {
    const Current current(self(device));
    *done = 0;
    if (current.error != cuda_success) return check(self(device), "cuCtxPushCurrent", current.error);
    return launch_all(self(device), launches, count, done);
}

/// Two events, which record when the stream reaches them.
class Events {
public:
    explicit Events(Cuda &cuda) : cuda_(cuda) {}
    Events(const Events &) = delete;
    Events &operator=(const Events &) = delete;
    ~Events() {
        for (CuHandle event : events_)
            if (event) cuda_.cu.cuEventDestroy_v2(event);
    }

    scalide_status create() {
        constexpr uint32_t timed = 0;
        scalide_status status = SCALIDE_OK;
        for (CuHandle &event : events_)
            if (status == SCALIDE_OK) status = check(cuda_, "cuEventCreate", cuda_.cu.cuEventCreate(&event, timed));
        return status;
    }
    scalide_status record(int which) const { return check(cuda_, "cuEventRecord", cuda_.cu.cuEventRecord(events_[which], cuda_.stream)); }
    /// Waits for the second event. The driver counts milliseconds, in steps of half a microsecond.
    scalide_status wait(double *seconds) const {
        float milliseconds = 0;
        scalide_status status = check(cuda_, "cuEventSynchronize", cuda_.cu.cuEventSynchronize(events_[1]));
        if (status == SCALIDE_OK)
            status = check(cuda_, "cuEventElapsedTime", cuda_.cu.cuEventElapsedTime(&milliseconds, events_[0], events_[1]));
        *seconds = 1e-3 * static_cast<double>(milliseconds);
        return status;
    }

private:
    Cuda &cuda_;
    CuHandle events_[2] = {};
};

scalide_status time(Device &device, const Launch *launches, int32_t count, int32_t *done, double *seconds) {
    Cuda &cuda = self(device);
    const Current current(cuda);
    *done = 0;
    if (current.error != cuda_success) return check(cuda, "cuCtxPushCurrent", current.error);
    Events events(cuda);
    scalide_status status = events.create();
    if (status == SCALIDE_OK) status = events.record(0);
    if (status == SCALIDE_OK) status = launch_all(cuda, launches, count, done);
    if (status == SCALIDE_OK) status = events.record(1);
    return status == SCALIDE_OK ? events.wait(seconds) : status;
}

// A failed capture must be ended, too. The graph that it returns is not valid.
scalide_status record_graph(Cuda &cuda, scalide_status (*run)(void *data), void *data, CuHandle *graph) {
    const int32_t begun = cuda.cu.cuStreamBeginCapture_v2(cuda.stream, cuda_capture_thread_local);
    if (begun != cuda_success) return check(cuda, "cuStreamBeginCapture", begun);
    const scalide_status launched = run(data);
    const int32_t ended = cuda.cu.cuStreamEndCapture(cuda.stream, graph);
    return launched == SCALIDE_OK ? check(cuda, "cuStreamEndCapture", ended) : launched;
}

scalide_status capture(Device &device, scalide_status (*run)(void *data), void *data, void **result) {
    Cuda &cuda = self(device);
    const Current current(cuda);
    if (current.error != cuda_success) return check(cuda, "cuCtxPushCurrent", current.error);
    CuHandle graph = nullptr, executable = nullptr;
    scalide_status status = record_graph(cuda, run, data, &graph);
    if (status == SCALIDE_OK) status = check(cuda, "cuGraphInstantiate", cuda.cu.cuGraphInstantiateWithFlags(&executable, graph, 0));
    if (graph) cuda.cu.cuGraphDestroy(graph);
    *result = status == SCALIDE_OK ? executable : nullptr;
    return status;
}

scalide_status replay(Device &device, void *graph) {
    return call(self(device), "cuGraphLaunch", self(device).cu.cuGraphLaunch, static_cast<CuHandle>(graph), self(device).stream);
}

void release_graph(Device &device, void *graph) {
    call(self(device), "cuGraphExecDestroy", self(device).cu.cuGraphExecDestroy, static_cast<CuHandle>(graph));
}

void close(Device &device) {
    Cuda &cuda = self(device);
    cuda.matmuls.close();
    if (cuda.units) call(cuda, "cuMemFree", cuda.cu.cuMemFree_v2, cuda.units);
    if (cuda.owns_stream) call(cuda, "cuStreamDestroy", cuda.cu.cuStreamDestroy_v2, cuda.stream);
    if (cuda.context) cuda.cu.cuDevicePrimaryCtxRelease_v2(cuda.ordinal);
    scalide::release(&cuda);
}

constexpr DeviceDriver driver = {
    SCALIDE_CUDA, allocate, release,        copy_in,        copy_out,      copy,   fill, synchronise, holds,  load_module,   unload_module,
    prepare,      forget,   accepts_matmul, prepare_matmul, forget_matmul, launch, time, capture,     replay, release_graph, close};

// The driver stays loaded, because other code in the process may use it.
const char *load(CudaFunctions &cu, void *library) {
#define SCALIDE_LOAD(name, arguments)                                                                                                      \
    if (!(cu.name = reinterpret_cast<decltype(cu.name)>(dlsym(library, #name)))) return #name;
    SCALIDE_CUDA_FUNCTIONS(SCALIDE_LOAD)
#undef SCALIDE_LOAD
    return nullptr;
}

scalide_status choose_device(Cuda &cuda, int32_t index, Text &failure) {
    int32_t count = 0;
    int32_t error = cuda.cu.cuInit(0);
    if (error == cuda_success) error = cuda.cu.cuDeviceGetCount(&count);
    if (error != cuda_success) {
        print_error(failure << "no CUDA GPU found: ", cuda, error) << ". Check that 'nvidia-smi' lists a GPU.";
        return SCALIDE_NO_DEVICE;
    }
    if (index < count) return check(cuda, "cuDeviceGet", cuda.cu.cuDeviceGet(&cuda.ordinal, index));
    failure << "device_index must be less than the number of CUDA devices, " << count << ", got " << index << '.';
    return SCALIDE_NO_DEVICE;
}

scalide_status read_facts(Cuda &cuda) {
    uint32_t major = 0, minor = 0;
    const struct {
        int32_t what;
        uint32_t &fact;
    } rows[] = {{cuda_grid_x, cuda.limits.blocks[0]},
                {cuda_grid_y, cuda.limits.blocks[1]},
                {cuda_grid_z, cuda.limits.blocks[2]},
                {cuda_threads_of_block, cuda.limits.threads},
                {cuda_shared_bytes, cuda.limits.shared_bytes},
                {cuda_major, major},
                {cuda_minor, minor}};
    for (const auto &row : rows) {
        int32_t value = 0;
        const scalide_status status = check(cuda, "cuDeviceGetAttribute", cuda.cu.cuDeviceGetAttribute(&value, row.what, cuda.ordinal));
        if (status != SCALIDE_OK) return status;
        row.fact = static_cast<uint32_t>(value);
    }
    cuda.capability = static_cast<int32_t>(10 * major + minor);
    return check(cuda, "cuDeviceGetName", cuda.cu.cuDeviceGetName(cuda.name, sizeof(cuda.name), cuda.ordinal));
}

void set_up_matmuls(Cuda &cuda, const scalide_options &options) {
    cuda.matmuls.set_up(
        {cuda.capability, cuda.name, options.cache_folder, options.time_matmuls ? MatmulSearch::timing : MatmulSearch::heuristic});
    cuda.matmul_workspace = cuda.matmuls.workspace_bytes();
}

scalide_status make_stream(Cuda &cuda, void *given, Text &failure) {
    if (!given) {
        const scalide_status status = call(cuda, "cuStreamCreate", cuda.cu.cuStreamCreate, &cuda.stream, cuda_non_blocking);
        cuda.owns_stream = status == SCALIDE_OK;
        return status;
    }
    cuda.stream = static_cast<CuHandle>(given);
    CuHandle context = nullptr;
    const scalide_status status = call(cuda, "cuStreamGetCtx", cuda.cu.cuStreamGetCtx, cuda.stream, &context);
    if (status != SCALIDE_OK || context == cuda.context) return status;
    failure << "stream must belong to the primary context of CUDA device " << cuda.ordinal
            << ". Choose the device of the stream with device_index.";
    return SCALIDE_INVALID_ARGUMENT;
}

scalide_status start(Cuda &cuda, const scalide_options &options, Text &failure) {
    scalide_status status = choose_device(cuda, options.device_index, failure);
    if (status == SCALIDE_OK) status = read_facts(cuda);
    if (status == SCALIDE_OK) set_up_matmuls(cuda, options);
    if (status == SCALIDE_OK) {
        status = check(cuda, "cuDevicePrimaryCtxRetain", cuda.cu.cuDevicePrimaryCtxRetain(&cuda.context, cuda.ordinal));
        if (status != SCALIDE_OK) cuda.context = nullptr;
    }
    if (status == SCALIDE_OK) status = make_stream(cuda, options.stream, failure);
    if (status != SCALIDE_OK && failure.size() == 0) failure << cuda.failure << ". Check the GPU with 'nvidia-smi'.";
    return status;
}

} // namespace

scalide_status open_cuda(const scalide_options &options, Device **result, Text &failure) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        failure << "cannot load the CUDA driver: " << dlerror() << ". Install the NVIDIA driver, or build for another target.";
        return SCALIDE_NO_DEVICE;
    }
    void *memory = scalide::allocate(sizeof(Cuda));
    if (!memory) return SCALIDE_OUT_OF_MEMORY;
    auto *cuda = new (memory) Cuda{};
    *result = cuda;
    cuda->driver = &driver;
    if (const char *name = load(cuda->cu, library)) {
        failure << "the CUDA driver has no function " << name << ". Install a driver of CUDA 11.4 or later.";
        return SCALIDE_NO_DEVICE;
    }
    return start(*cuda, options, failure);
}

} // namespace scalide

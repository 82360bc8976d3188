#include "standin_cuda.h"
#include "support/ptx/machine.h"
#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

// The interface of cuda.h, in its own words: the runtime's declarations are what is tested.
using CUresult = int;
using CUdeviceptr = unsigned long long;
using CUcontext = struct Object *;
using CUstream = struct Object *;
using CUevent = struct Object *;
using CUmodule = struct Object *;
using CUfunction = struct Object *;
using CUgraph = struct Object *;
using CUgraphExec = struct Object *;

namespace {

enum : CUresult {
    success = 0,
    invalid_value = 1,
    out_of_memory = 2,
    no_device = 100,
    invalid_device = 101,
    invalid_context = 201,
    invalid_handle = 400,
    not_found = 500,
    illegal_address = 700,
    invalid_ptx = 218,
    capture_unsupported = 900
};
constexpr int device_count = 2;

std::vector<std::string> calls;
int64_t fail_at = -1;
int capability = 90;
CUresult failure = success;

} // namespace

struct Object {
    enum Kind { context, stream, event, module, function, graph, executable } kind;
    int device;
    std::string name;
    Object *owner;                     // module of a function
    std::vector<std::string> launches; // of a stream that is captured, of a graph
    bool is_captured;
    std::shared_ptr<const scalide::ptx::Module> code; // of a module, where kernels are computed
    std::vector<std::function<void()>> work = {};     // of a stream that is captured, of a graph: what is computed
    size_t recorded = 0;                              // of an event: the number of the call that recorded it
};

namespace {

std::set<Object *> objects;
std::map<CUdeviceptr, size_t> memory;
Object *primary[device_count];
int retained[device_count];
thread_local std::vector<Object *> current;

std::string format(const char *pattern, va_list values) {
    char text[2000];
    std::vsnprintf(text, sizeof text, pattern, values);
    return text;
}

/// Writes the call down; what it returns is the error that was asked for.
CUresult enter(const char *pattern, ...) {
    va_list values;
    va_start(values, pattern);
    calls.push_back(format(pattern, values));
    va_end(values);
    return static_cast<int64_t>(calls.size()) - 1 == fail_at ? failure : success;
}

bool is_alive(Object *object, Object::Kind kind) { return objects.count(object) && object->kind == kind; }

Object *make(Object::Kind kind, const std::string &name = "") {
    auto *object = new Object{kind, current.empty() ? 0 : current.back()->device, name, nullptr, {}, false, nullptr};
    objects.insert(object);
    return object;
}

void drop(Object *object) {
    objects.erase(object);
    delete object;
}

bool is_capturing() {
    for (Object *object : objects) {
        if (object->is_captured) return true;
    }
    return false;
}

/// What every call on memory, modules and streams needs.
CUresult need_context() { return current.empty() ? invalid_context : success; }
CUresult need_quiet() { return current.empty() ? invalid_context : is_capturing() ? capture_unsupported : success; }

std::deque<size_t> argument_counts; // of the launches to come: a driver finds them in the module

// Other kernels are named after how many arguments they have: `rows.3`.
size_t argument_count(const std::string &name) {
    const size_t dot = name.rfind('.');
    return dot == std::string::npos ? 0 : std::strtoul(name.c_str() + dot + 1, nullptr, 10);
}

bool computes() { return std::getenv("SCALIDE_STANDIN_COMPUTES") != nullptr; }

/// As memcheck does.
void check_access(uint64_t address, size_t bytes) {
    const auto after = memory.upper_bound(address);
    const bool is_inside = after != memory.begin() && address + bytes <= std::prev(after)->first + std::prev(after)->second;
    if (!is_inside) throw std::runtime_error("ptx: " + std::to_string(bytes) + " bytes outside of all arrays");
}

/// Now, or when the graph that is captured is launched.
void compute(const std::function<void()> &work) {
    for (Object *object : objects)
        if (object->is_captured) return object->work.push_back(work);
    work();
}

/// Work of a stream that is no kernel.
void append(CUstream stream, const std::string &call, const std::function<void()> &work) {
    if (stream->is_captured) stream->launches.push_back(call);
    compute(work);
}

/// Words for whoever reads the output of a test.
CUresult fail(CUresult error, const std::exception &reason) {
    std::fprintf(stderr, "%s\n", reason.what());
    return error;
}

/// Runs a kernel, or returns the error of a GPU that met an illegal address.
CUresult run(const Object &function, const scalide::ptx::Launch &launch, void **arguments) try {
    const scalide::ptx::Entry &entry = *function.owner->code->find(function.name);
    // The caller's values need not live until a graph is launched.
    std::vector<std::vector<unsigned char>> values;
    for (size_t i = 0; i < entry.bytes_of.size(); i++) {
        const auto *value = static_cast<const unsigned char *>(arguments[i]);
        values.emplace_back(value, value + entry.bytes_of[i]);
    }
    compute([&entry, launch, values, code = function.owner->code] {
        std::vector<void *> places;
        for (const auto &value : values) places.push_back(const_cast<unsigned char *>(value.data()));
        scalide::ptx::Module::run(entry, launch, places.data(), check_access);
    });
    return success;
} catch (const std::exception &error) {
    return fail(illegal_address, error);
}

} // namespace

#define RETURN_IF(error)                                                                                                                   \
    if (const CUresult code_ = (error)) return code_

extern "C" {

void standin_reset(int64_t call, int32_t error) {
    calls.clear();
    fail_at = call;
    failure = error;
}
void standin_note(const char *call) { calls.push_back(call); }
void standin_compute(const std::function<void()> *work) { compute(*work); }
void standin_arguments(size_t count) { argument_counts.push_back(count); }
size_t standin_count() { return calls.size(); }
const char *standin_call(size_t index) { return calls[index].c_str(); }
size_t standin_live() { return objects.size() + memory.size(); }
void standin_capability(int32_t of_cards) { capability = of_cards; }
void standin_lose() {
    while (!objects.empty()) drop(*objects.begin());
    for (const auto &[address, bytes] : memory) std::free(reinterpret_cast<void *>(address));
    memory.clear();
    std::fill(std::begin(retained), std::end(retained), 0);
}

CUresult cuGetErrorName(CUresult error, const char **name) {
    *name = error == 2                 ? "CUDA_ERROR_OUT_OF_MEMORY"
            : error == no_device       ? "CUDA_ERROR_NO_DEVICE"
            : error == 209             ? "CUDA_ERROR_NO_BINARY_FOR_GPU"
            : error == illegal_address ? "CUDA_ERROR_ILLEGAL_ADDRESS"
                                       : "CUDA_ERROR_UNKNOWN";
    return success;
}
CUresult cuGetErrorString(CUresult error, const char **words) {
    *words = error == 2 ? "out of memory" : error == no_device ? "no CUDA-capable device is detected" : "stand-in";
    return success;
}

CUresult cuInit(unsigned) { return enter("cuInit"); }
CUresult cuDeviceGetCount(int *count) {
    RETURN_IF(enter("cuDeviceGetCount"));
    *count = device_count;
    return success;
}
CUresult cuDeviceGet(int *device, int index) {
    RETURN_IF(enter("cuDeviceGet %d", index));
    RETURN_IF(index < device_count ? success : invalid_device);
    *device = index;
    return success;
}
CUresult cuDeviceGetName(char *name, int room, int device) {
    RETURN_IF(enter("cuDeviceGetName %d", device));
    std::snprintf(name, static_cast<size_t>(room), "stand-in %d", device);
    return success;
}
CUresult cuDeviceGetAttribute(int *value, int what, int device) {
    RETURN_IF(enter("cuDeviceGetAttribute %d %d", what, device));
    const std::map<int, int> attributes = {
        {1, 1024}, {5, 2147483647}, {6, 65535}, {7, 65535}, {75, capability / 10}, {76, capability % 10}, {97, 232448}};
    RETURN_IF(attributes.count(what) ? success : invalid_value);
    *value = attributes.at(what);
    return success;
}
CUresult cuDevicePrimaryCtxRetain(CUcontext *context, int device) {
    RETURN_IF(enter("cuDevicePrimaryCtxRetain %d", device));
    if (retained[device]++ == 0) {
        primary[device] = make(Object::context);
        primary[device]->device = device;
    }
    *context = primary[device];
    return success;
}
CUresult cuDevicePrimaryCtxRelease_v2(int device) {
    const CUresult error = enter("cuDevicePrimaryCtxRelease %d", device);
    RETURN_IF(retained[device] > 0 ? success : invalid_context);
    if (--retained[device] == 0) drop(primary[device]);
    return error;
}
CUresult cuCtxPushCurrent_v2(CUcontext context) {
    RETURN_IF(enter("cuCtxPushCurrent"));
    RETURN_IF(is_alive(context, Object::context) ? success : invalid_context);
    current.push_back(context);
    return success;
}
CUresult cuCtxPopCurrent_v2(CUcontext *context) {
    const CUresult error = enter("cuCtxPopCurrent");
    RETURN_IF(need_context());
    *context = current.back();
    current.pop_back();
    return error;
}

CUresult cuStreamCreate(CUstream *stream, unsigned flags) {
    RETURN_IF(enter("cuStreamCreate %u", flags));
    RETURN_IF(need_quiet());
    *stream = make(Object::stream);
    return success;
}
CUresult cuStreamDestroy_v2(CUstream stream) {
    const CUresult error = enter("cuStreamDestroy");
    RETURN_IF(is_alive(stream, Object::stream) ? success : invalid_handle);
    drop(stream);
    return error;
}
CUresult cuStreamGetCtx(CUstream stream, CUcontext *context) {
    RETURN_IF(enter("cuStreamGetCtx"));
    RETURN_IF(is_alive(stream, Object::stream) ? success : invalid_handle);
    *context = primary[stream->device];
    return success;
}
CUresult cuStreamSynchronize(CUstream stream) {
    RETURN_IF(enter("cuStreamSynchronize"));
    RETURN_IF(is_alive(stream, Object::stream) ? success : invalid_handle);
    return need_quiet();
}

/// The clock counts the calls: each takes a microsecond.
CUresult cuEventCreate(CUevent *event, unsigned flags) {
    RETURN_IF(enter("cuEventCreate %u", flags));
    RETURN_IF(need_quiet());
    *event = make(Object::event);
    return success;
}
CUresult cuEventRecord(CUevent event, CUstream stream) {
    RETURN_IF(enter("cuEventRecord"));
    RETURN_IF(is_alive(event, Object::event) && is_alive(stream, Object::stream) ? need_quiet() : invalid_handle);
    event->recorded = calls.size();
    return success;
}
CUresult cuEventSynchronize(CUevent event) {
    RETURN_IF(enter("cuEventSynchronize"));
    return is_alive(event, Object::event) && event->recorded > 0 ? need_quiet() : invalid_handle;
}
CUresult cuEventElapsedTime(float *milliseconds, CUevent begin, CUevent end) {
    RETURN_IF(enter("cuEventElapsedTime"));
    RETURN_IF(is_alive(begin, Object::event) && is_alive(end, Object::event) && begin->recorded && end->recorded ? success
                                                                                                                 : invalid_handle);
    *milliseconds = 1e-3F * static_cast<float>(end->recorded - begin->recorded);
    return success;
}
CUresult cuEventDestroy_v2(CUevent event) {
    const CUresult error = enter("cuEventDestroy");
    RETURN_IF(is_alive(event, Object::event) ? success : invalid_handle);
    drop(event);
    return error;
}

CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes) {
    RETURN_IF(enter("cuMemAlloc %zu", bytes));
    RETURN_IF(bytes > 0 ? need_quiet() : invalid_value);
    void *made = std::aligned_alloc(512, (bytes + 511) / 512 * 512);
    RETURN_IF(made ? success : out_of_memory);
    *address = reinterpret_cast<CUdeviceptr>(made);
    memory[*address] = bytes;
    return success;
}
CUresult cuMemFree_v2(CUdeviceptr address) {
    const CUresult error = enter("cuMemFree");
    RETURN_IF(memory.count(address) ? need_quiet() : invalid_value);
    memory.erase(address);
    std::free(reinterpret_cast<void *>(address));
    return error;
}
CUresult cuPointerGetAttribute(void *value, int what, CUdeviceptr address) {
    RETURN_IF(enter("cuPointerGetAttribute %d", what));
    const auto next = memory.upper_bound(address);
    if (next == memory.begin() || address >= std::prev(next)->first + std::prev(next)->second) return invalid_value;
    const unsigned device_memory = 2;
    const int number = what == 2 ? static_cast<int>(device_memory) : 0; // managed: no; device 0
    std::memcpy(value, &number, sizeof number);
    return success;
}
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream) {
    RETURN_IF(enter("cuMemcpyHtoDAsync %zu", bytes));
    RETURN_IF(is_alive(stream, Object::stream) ? need_quiet() : invalid_handle);
    std::memcpy(reinterpret_cast<void *>(to), from, bytes);
    return success;
}
CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream) {
    RETURN_IF(enter("cuMemcpyDtoHAsync %zu", bytes));
    RETURN_IF(is_alive(stream, Object::stream) ? need_quiet() : invalid_handle);
    std::memcpy(to, reinterpret_cast<void *>(from), bytes);
    return success;
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
    RETURN_IF(enter("cuMemcpyDtoD %zu", bytes));
    RETURN_IF(is_alive(stream, Object::stream) ? need_context() : invalid_handle);
    append(stream, "cuMemcpyDtoD", [=] { std::memcpy(reinterpret_cast<void *>(to), reinterpret_cast<const void *>(from), bytes); });
    return success;
}
CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream) {
    RETURN_IF(enter("cuMemsetD8Async %zu", count));
    RETURN_IF(is_alive(stream, Object::stream) ? need_context() : invalid_handle);
    append(stream, "cuMemsetD8Async", [=] { std::fill_n(reinterpret_cast<unsigned char *>(to), count, value); });
    return success;
}
CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t count, CUstream stream) {
    RETURN_IF(enter("cuMemsetD32Async %zu", count));
    RETURN_IF(is_alive(stream, Object::stream) ? need_context() : invalid_handle);
    append(stream, "cuMemsetD32Async", [=] { std::fill_n(reinterpret_cast<unsigned *>(to), count, value); });
    return success;
}
CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned count, int *options, void **values) {
    const CUresult error = enter("cuModuleLoadDataEx");
    for (unsigned i = 0; error && i < count; i++) {
        if (options[i] == 5) std::strcpy(static_cast<char *>(values[i]), "the assembler's words");
    }
    RETURN_IF(error);
    RETURN_IF(image ? need_quiet() : invalid_value);
    *module = make(Object::module);
    if (!computes()) return success;
    try {
        const char *text = static_cast<const char *>(image);
        const bool is_text = std::strncmp(text, ".version", 8) == 0;
        (*module)->code = std::make_shared<scalide::ptx::Module>(is_text ? text : scalide::ptx::text_of_fat_binary(image));
        return success;
    } catch (const std::exception &error) {
        return fail(invalid_ptx, error);
    }
}
CUresult cuModuleUnload(CUmodule module) {
    const CUresult error = enter("cuModuleUnload");
    RETURN_IF(is_alive(module, Object::module) ? need_quiet() : invalid_handle);
    for (auto at = objects.begin(); at != objects.end();) {
        Object *object = *at++;
        if (object->owner == module) drop(object);
    }
    drop(module);
    return error;
}
CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
    RETURN_IF(enter("cuModuleGetFunction %s", name));
    RETURN_IF(is_alive(module, Object::module) ? need_context() : invalid_handle);
    if (module->code && !module->code->find(name)) return not_found;
    *function = make(Object::function, name);
    (*function)->owner = module;
    return success;
}
CUresult cuFuncSetAttribute(CUfunction function, int what, int value) {
    RETURN_IF(enter("cuFuncSetAttribute %s %d %d", function->name.c_str(), what, value));
    return need_context();
}
CUresult cuLaunchKernel(CUfunction function, unsigned blocks_x, unsigned blocks_y, unsigned blocks_z, unsigned threads_x,
                        unsigned threads_y, unsigned threads_z, unsigned shared_bytes, CUstream stream, void **arguments, void **) {
    std::string words;
    const size_t count = argument_counts.empty() ? argument_count(function->name) : argument_counts.front();
    if (!argument_counts.empty()) argument_counts.pop_front();
    for (size_t i = 0; i < count; i++) words += " " + std::to_string(*static_cast<uint64_t *>(arguments[i]));
    const std::string call = function->name + " blocks " + std::to_string(blocks_x) + " " + std::to_string(blocks_y) + " " +
                             std::to_string(blocks_z) + " threads " + std::to_string(threads_x) + " " + std::to_string(threads_y) + " " +
                             std::to_string(threads_z) + " shared " + std::to_string(shared_bytes) + " arguments" + words;
    RETURN_IF(enter("cuLaunchKernel %s", call.c_str()));
    RETURN_IF(is_alive(stream, Object::stream) ? need_context() : invalid_handle);
    if (stream->is_captured) stream->launches.push_back(call);
    if (!function->owner || !function->owner->code) return success;
    return run(*function, {{blocks_x, blocks_y, blocks_z}, {threads_x, threads_y, threads_z}, shared_bytes}, arguments);
}

CUresult cuStreamBeginCapture_v2(CUstream stream, int mode) {
    RETURN_IF(enter("cuStreamBeginCapture %d", mode));
    RETURN_IF(is_alive(stream, Object::stream) ? need_quiet() : invalid_handle);
    stream->is_captured = true;
    return success;
}
CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph) {
    const CUresult error = enter("cuStreamEndCapture");
    RETURN_IF(is_alive(stream, Object::stream) && stream->is_captured ? success : invalid_handle);
    stream->is_captured = false;
    if (!error) {
        *graph = make(Object::graph);
        (*graph)->launches.swap(stream->launches);
        (*graph)->work.swap(stream->work);
    }
    stream->launches.clear();
    stream->work.clear();
    return error;
}
CUresult cuGraphDestroy(CUgraph graph) {
    const CUresult error = enter("cuGraphDestroy");
    RETURN_IF(is_alive(graph, Object::graph) ? success : invalid_handle);
    drop(graph);
    return error;
}
CUresult cuGraphExecDestroy(CUgraphExec executable) {
    const CUresult error = enter("cuGraphExecDestroy");
    RETURN_IF(is_alive(executable, Object::executable) ? success : invalid_handle);
    drop(executable);
    return error;
}
CUresult cuGraphLaunch(CUgraphExec executable, CUstream stream) {
    RETURN_IF(enter("cuGraphLaunch %zu", is_alive(executable, Object::executable) ? executable->launches.size() : 0));
    RETURN_IF(is_alive(stream, Object::stream) ? need_context() : invalid_handle);
    RETURN_IF(is_alive(executable, Object::executable) ? success : invalid_handle);
    try {
        for (const std::function<void()> &work : executable->work) work();
        return success;
    } catch (const std::exception &error) {
        return fail(illegal_address, error);
    }
}
#ifndef SCALIDE_OLD_DRIVER
CUresult cuGraphInstantiateWithFlags(CUgraphExec *executable, CUgraph graph, unsigned long long flags) {
    RETURN_IF(enter("cuGraphInstantiate %llu", flags));
    RETURN_IF(is_alive(graph, Object::graph) ? need_quiet() : invalid_handle);
    *executable = make(Object::executable);
    (*executable)->launches = graph->launches;
    (*executable)->work = graph->work;
    return success;
}
#endif
}

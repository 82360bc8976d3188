#include "support/cuda/driver.h"
#include <dlfcn.h>
#include <stdexcept>

namespace scalide {

template<typename... Arguments>
void Driver::call(const char *name, Arguments... arguments) const {
    const auto function = reinterpret_cast<int (*)(Arguments...)>(dlsym(library_, name));
    if (!function) throw std::runtime_error(std::string(name) + ": the driver has none");
    if (const int status = function(arguments...)) throw std::runtime_error(std::string(name) + " gave " + std::to_string(status));
}

Driver::Driver() : library_(dlopen("libcuda.so.1", RTLD_NOW)) {
    if (!library_) throw std::runtime_error(dlerror());
    void *context = nullptr;
    call("cuInit", 0u);
    call("cuDevicePrimaryCtxRetain", &context, 0);
    call("cuCtxPushCurrent_v2", context);
    call("cuStreamCreate", &stream_, 1u); // waits for no other stream
}

Driver::~Driver() {
    void *context = nullptr;
    for (void *module : modules_) call("cuModuleUnload", module);
    call("cuStreamDestroy_v2", stream_);
    call("cuCtxPopCurrent_v2", &context);
    call("cuDevicePrimaryCtxRelease_v2", 0);
}

void Driver::copy(void *to, const void *from, size_t bytes) const {
    call("cuMemcpyDtoDAsync_v2", reinterpret_cast<unsigned long long>(to), reinterpret_cast<unsigned long long>(from), bytes, stream_);
}

void Driver::wait() const { call("cuStreamSynchronize", stream_); }

void *Driver::load(const std::string &ptx, const std::string &name) {
    void *module = nullptr, *kernel = nullptr;
    call("cuModuleLoadDataEx", &module, ptx.c_str(), 0u, static_cast<int *>(nullptr), static_cast<void **>(nullptr));
    modules_.push_back(module);
    call("cuModuleGetFunction", &kernel, module, name.c_str());
    return kernel;
}

void Driver::launch(void *kernel, Blocks blocks, unsigned threads, unsigned shared_bytes, void **arguments) const {
    call("cuLaunchKernel", kernel, blocks.x, blocks.y, 1u, threads, 1u, 1u, shared_bytes, stream_, arguments,
         static_cast<void **>(nullptr));
}

} // namespace scalide

// The entry points that the host code of device kernels calls. As in hooks.cpp, they go through the user context. Each kernel has one word
// of state, which all contexts share. It contains the address of the kernel's device code, by which a context finds what it has loaded. If
// the user context is not from Scalide, nothing can be launched and the hooks return an error.
#include "base/kernel_context.h"

#define SCALIDE_HOOK extern "C" __attribute__((weak, visibility("hidden")))

namespace {

using namespace scalide;

constexpr int no_device = -19; // halide_error_code_no_device_interface

const KernelServices *services_of(void *user_context) {
    const auto *context = static_cast<const KernelContext *>(user_context);
    return context && context->mark == kernel_context_mark ? context->services : nullptr;
}

int remember(void **state, const char *source) {
    __atomic_store_n(state, const_cast<char *>(source), __ATOMIC_RELAXED);
    return 0;
}

// Refuses to move a buffer between host and device, which Halide may request. All memory of a plan belongs to the device.
int refuse(void *user_context, const char *what) {
    if (const KernelServices *services = services_of(user_context)) services->error(user_context, what);
    return no_device;
}

constexpr uint64_t host_dirty = 1;
constexpr const char *host_stage = "the kernel contains a stage that runs on the host. This is a bug in Scalide; please report it.";

} // namespace

#define SCALIDE_DEVICE_HOOKS(device)                                                                                                       \
    SCALIDE_HOOK int halide_##device##_initialize_kernels(void *, void **state, const char *source, int) {                                 \
        return remember(state, source);                                                                                                    \
    }                                                                                                                                      \
    SCALIDE_HOOK void halide_##device##_finalize_kernels(void *, void *) {}                                                                \
    SCALIDE_HOOK const void *halide_##device##_device_interface() { return nullptr; }                                                      \
    SCALIDE_HOOK int halide_##device##_run(void *user_context, void *state, const char *name, int blocks_x, int blocks_y, int blocks_z,    \
                                           int threads_x, int threads_y, int threads_z, int shared_bytes, size_t *sizes, void **arguments, \
                                           int8_t *is_buffer) {                                                                            \
        const KernelServices *services = services_of(user_context);                                                                        \
        const HalideLaunch launch = {                                                                                                      \
            state, name, {blocks_x, blocks_y, blocks_z}, {threads_x, threads_y, threads_z}, shared_bytes, sizes, arguments, is_buffer};    \
        return services ? services->launch(user_context, launch) : no_device;                                                              \
    }

SCALIDE_DEVICE_HOOKS(cuda)
SCALIDE_DEVICE_HOOKS(opencl)

SCALIDE_HOOK int halide_copy_to_device(void *user_context, HalideBuffer *buffer, const void *) {
    return buffer->flags & host_dirty ? refuse(user_context, host_stage) : 0;
}

SCALIDE_HOOK int halide_copy_to_host(void *user_context, HalideBuffer *) { return refuse(user_context, host_stage); }

SCALIDE_HOOK int halide_device_malloc(void *user_context, HalideBuffer *buffer, const void *) {
    if (buffer->device != 0) return 0; // kernels ask again before each use
    const KernelServices *services = services_of(user_context);
    return services ? services->allocate_on_device(user_context, buffer) : no_device;
}

SCALIDE_HOOK int halide_device_free(void *, HalideBuffer *buffer) {
    buffer->device = 0;
    return 0;
}

SCALIDE_HOOK void halide_device_free_as_destructor(void *, void *buffer) { static_cast<HalideBuffer *>(buffer)->device = 0; }

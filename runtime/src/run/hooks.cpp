// The entry points that Halide's kernels call. They go through the user context. So a shared library of kernels has its own copy of this
// file. It still uses the threads and the scratch memory of the runtime that runs it.
//
// Symbol clashes: an application may contain Halide's own runtime, which defines the same names as weak symbols. The symbols of this file
// are weak and hidden. Either definition may win a static link, and a shared library exports none of them.
// - If these symbols win, kernels of others run serially on malloc. Their user context is NULL or does not begin with Scalide's mark.
// - If Halide's symbols win, Scalide's kernels run on Halide's threads and heap. The results are correct, but a run allocates memory.
// To keep both fast, link the two into different shared libraries.
#include "base/kernel_context.h"
#include "base/memory.h"

#define SCALIDE_HOOK extern "C" __attribute__((weak, visibility("hidden")))

namespace {

using namespace scalide;

const KernelServices *services_of(void *user_context) {
    const auto *context = static_cast<const KernelContext *>(user_context);
    return context && context->mark == kernel_context_mark ? context->services : nullptr;
}

} // namespace

SCALIDE_HOOK int halide_do_par_for(void *user_context, HalideTask task, int min, int size, uint8_t *closure) {
    if (const KernelServices *services = services_of(user_context)) return services->parallel_for(user_context, task, min, size, closure);
    int error = 0;
    for (int i = 0; i < size && error == 0; ++i) error = task(user_context, min + i, closure);
    return error;
}

SCALIDE_HOOK void *halide_malloc(void *user_context, size_t bytes) {
    if (const KernelServices *services = services_of(user_context)) return services->allocate(user_context, bytes);
    // Halide may access 8 bytes before and after the memory, so one cache line is added on both sides.
    char *memory = bytes < PTRDIFF_MAX ? static_cast<char *>(allocate(bytes + 2 * memory_alignment)) : nullptr;
    return memory ? memory + memory_alignment : nullptr;
}

SCALIDE_HOOK void halide_free(void *user_context, void *memory) {
    if (const KernelServices *services = services_of(user_context)) return services->release(user_context, memory);
    if (memory) release(static_cast<char *>(memory) - memory_alignment);
}

SCALIDE_HOOK void halide_error(void *user_context, const char *message) {
    if (const KernelServices *services = services_of(user_context)) services->error(user_context, message);
}

// Memory of a context, and copies between it and the host's memory. A context uses the driver of its device or the memory of the CPU.
#include "context.h"
#include "run/memory.h"
#include "threads/float_environment.h"
#include <cstring>

using namespace scalide;

namespace {

scalide_status failed(scalide_context *context, const char *what, scalide_status status) {
    if (status != SCALIDE_OK) start_message(context) << what << ": " << context->device->failure << ". " << way_out(status);
    return status;
}

} // namespace

scalide_status scalide_allocate(scalide_context *context, size_t bytes, void **memory) {
    if (!context || !memory) return SCALIDE_INVALID_ARGUMENT;
    const FloatEnvironment environment;
    *memory = nullptr;
    Device *device = context->device;
    const uint64_t wanted = bytes > 0 ? bytes : 1;
    if (device) return failed(context, "scalide_allocate", device->driver->allocate(*device, wanted, memory));
    *memory = allocate(context->allocator, wanted);
    if (*memory) return SCALIDE_OK;
    start_message(context) << "scalide_allocate: cannot allocate " << wanted << " bytes: out of memory.";
    return SCALIDE_OUT_OF_MEMORY;
}

void scalide_release(scalide_context *context, void *memory) {
    if (!context || !memory) return;
    const FloatEnvironment environment;
    if (context->device) {
        context->device->driver->synchronise(*context->device); // a run in progress may use this memory
        context->device->driver->release(*context->device, memory);
    } else {
        release(context->allocator, memory);
    }
}

scalide_status scalide_copy_in(scalide_context *context, void *to, const void *from, size_t bytes) {
    if (!context || (bytes > 0 && (!to || !from))) return SCALIDE_INVALID_ARGUMENT;
    const FloatEnvironment environment;
    Device *device = context->device;
    if (bytes == 0) return SCALIDE_OK;
    if (device) return failed(context, "scalide_copy_in", device->driver->copy_in(*device, to, from, bytes));
    std::memmove(to, from, bytes);
    return SCALIDE_OK;
}

scalide_status scalide_copy_out(scalide_context *context, void *to, const void *from, size_t bytes) {
    if (!context || (bytes > 0 && (!to || !from))) return SCALIDE_INVALID_ARGUMENT;
    const FloatEnvironment environment;
    Device *device = context->device;
    if (bytes == 0) return SCALIDE_OK;
    if (device) return failed(context, "scalide_copy_out", device->driver->copy_out(*device, to, from, bytes));
    std::memmove(to, from, bytes);
    return SCALIDE_OK;
}

scalide_status scalide_synchronise(scalide_context *context) {
    if (!context) return SCALIDE_INVALID_ARGUMENT;
    const FloatEnvironment environment;
    Device *device = context->device;
    return device ? failed(context, "scalide_synchronise", device->driver->synchronise(*device)) : SCALIDE_OK;
}

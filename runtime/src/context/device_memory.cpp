// Memory of a context, and copies between it and the host's memory. A context uses the driver of its device or the memory of the CPU. The
// memory of the CPU needs nothing of the context, so any thread may allocate and copy there. A driver serves one thread at a time.
#include "base/float_environment.h"
#include "base/memory.h"
#include "context/context.h"
#include "context/entry.h"
#include <cstring>

using namespace scalide;

namespace {

scalide_status failed(scalide_context *context, const char *what, scalide_status status) {
    if (status != SCALIDE_OK) start_message(context) << what << ": " << context->device->failure << ". " << way_out(status);
    return status;
}

scalide_status allocate_on_cpu(scalide_context *context, uint64_t bytes, void **memory) {
    *memory = allocate(context->allocator, bytes);
    if (*memory) return SCALIDE_OK;
    const Entry entry(context, "scalide_allocate"); // for the message
    if (entry.status() == SCALIDE_OK) start_message(context) << "scalide_allocate: cannot allocate " << bytes << " bytes: out of memory.";
    return SCALIDE_OUT_OF_MEMORY;
}

/// Copies by the driver's function `copy`. On the CPU, the context is entered only for the message of an error.
scalide_status copy_bytes(scalide_context *context, const char *function, decltype(&DeviceDriver::copy_in) copy, void *to, const void *from,
                          size_t bytes) {
    if (!context || (bytes > 0 && (!to || !from))) return Entry(context, function, {{"to", to}, {"from", from}}).status();
    if (bytes == 0) return SCALIDE_OK;
    if (!context->device) {
        std::memmove(to, from, bytes);
        return SCALIDE_OK;
    }
    const Entry entry(context, function);
    if (entry.status() != SCALIDE_OK) return entry.status();
    const FloatEnvironment environment;
    return failed(context, function, (context->device->driver->*copy)(*context->device, to, from, bytes));
}

} // namespace

scalide_status scalide_allocate(scalide_context *context, size_t bytes, void **memory) {
    if (memory) *memory = nullptr;
    const uint64_t wanted = bytes > 0 ? bytes : 1;
    const FloatEnvironment environment;
    if (context && memory && !context->device) return allocate_on_cpu(context, wanted, memory);
    const Entry entry(context, "scalide_allocate", {{"memory", memory}});
    if (entry.status() != SCALIDE_OK) return entry.status();
    return failed(context, "scalide_allocate", context->device->driver->allocate(*context->device, wanted, memory));
}

void scalide_release(scalide_context *context, void *memory) {
    if (!context || !memory) return;
    const FloatEnvironment environment;
    if (!context->device) return release(context->allocator, memory);
    enter_when_free(*context);
    context->device->driver->synchronise(*context->device); // a run in progress may use this memory
    context->device->driver->release(*context->device, memory);
    leave(*context);
}

scalide_status scalide_copy_in(scalide_context *context, void *to, const void *from, size_t bytes) {
    return copy_bytes(context, "scalide_copy_in", &DeviceDriver::copy_in, to, from, bytes);
}

scalide_status scalide_copy_out(scalide_context *context, void *to, const void *from, size_t bytes) {
    return copy_bytes(context, "scalide_copy_out", &DeviceDriver::copy_out, to, from, bytes);
}

scalide_status scalide_synchronise(scalide_context *context) {
    if (context && !context->device) return SCALIDE_OK;
    const Entry entry(context, "scalide_synchronise");
    if (entry.status() != SCALIDE_OK) return entry.status();
    const FloatEnvironment environment;
    return failed(context, "scalide_synchronise", context->device->driver->synchronise(*context->device));
}

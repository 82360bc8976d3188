// A run on a device appends the launches that bind has recorded to the device's queue.
#include "base/clock.h"
#include "base/float_environment.h"
#include "bind/binding.h"
#include "bind/extent.h"
#include "context/entry.h"

namespace scalide {

namespace {

scalide_status fail(scalide_binding &binding, scalide_status status) {
    start_message(binding.context) << binding.program->name << '.' << binding.program->steps[binding.current_step].name << ": "
                                   << binding.context->device->failure << ". " << way_out(status);
    return binding.status = report(binding.context, status);
}

/// Launches, waits for the end and sets *seconds to the time that it took.
scalide_status time(Device &device, const Launch *launches, int32_t count, int32_t *done, double *seconds) {
    if (device.driver->time) return device.driver->time(device, launches, count, done, seconds);
    const double start = now();
    scalide_status status = device.driver->launch(device, launches, count, done);
    if (status == SCALIDE_OK) status = device.driver->synchronise(device);
    *seconds = now() - start;
    return status;
}

/// Launches the entries [begin, end). If `seconds` is not NULL, waits for their end and sets it to the time that they took.
scalide_status launch(scalide_binding &binding, int32_t begin, int32_t end, double *seconds = nullptr) {
    Device &device = *binding.context->device;
    const Launch *launches = binding.launches.rows + begin;
    int32_t done = 0;
    const scalide_status status =
        seconds ? time(device, launches, end - begin, &done, seconds) : device.driver->launch(device, launches, end - begin, &done);
    if (status == SCALIDE_OK) return status;
    while (binding.launches.ends[binding.current_step] <= begin + done && binding.current_step + 1 < binding.program->step_count)
        ++binding.current_step;
    return fail(binding, status);
}

// Copies new buffers to the host, where the trace can read them.
scalide_status show_new_buffers(scalide_binding &binding, const Trace &trace) {
    Device &device = *binding.context->device;
    for (int32_t i = 0; i < binding.program->buffer_count; ++i) {
        const scalide_buffer &buffer = binding.program->buffers[i];
        if (buffer.first_step != binding.current_step) continue;
        const uint64_t bytes = scalide::bytes_of(*binding.program, *binding.layout, i);
        void *copy = allocate(binding.context->allocator, bytes);
        if (!copy) {
            start_message(binding.context) << binding.program->name << '.' << buffer.name << ": cannot allocate " << bytes
                                           << " bytes for the trace: out of memory. Bind smaller arrays.";
            return SCALIDE_OUT_OF_MEMORY;
        }
        const scalide_status status = bytes > 0 ? device.driver->copy_out(device, copy, binding.memory[i], bytes) : SCALIDE_OK;
        if (status == SCALIDE_OK) trace.show(buffer, describe(buffer, binding.symbols, copy));
        release(binding.context->allocator, copy);
        if (status != SCALIDE_OK) return fail(binding, status);
    }
    return SCALIDE_OK;
}

scalide_status run_traced(scalide_binding &binding, const Trace &trace) {
    scalide_status status = SCALIDE_OK;
    int32_t begin = 0;
    for (int32_t step = 0; status == SCALIDE_OK && step < binding.program->step_count; ++step) {
        binding.current_step = step;
        double seconds = 0;
        status = launch(binding, begin, binding.launches.ends[step], trace.profile ? &seconds : nullptr);
        begin = binding.launches.ends[step];
        if (status == SCALIDE_OK && trace.call) status = show_new_buffers(binding, trace);
        if (status == SCALIDE_OK && trace.profile) keep_fastest(trace.profile[step], seconds);
    }
    return status;
}

} // namespace

scalide_status run_on_device(scalide_binding &binding, const Trace &trace) {
    if (trace.is_on()) return run_traced(binding, trace);
    binding.current_step = 0;
    if (!binding.launches.graph) return launch(binding, 0, binding.launches.used);
    Device &device = *binding.context->device;
    const scalide_status status = device.driver->replay(device, binding.launches.graph);
    return status == SCALIDE_OK ? status : fail(binding, status);
}

scalide_status capture(scalide_binding &binding) {
    Device &device = *binding.context->device;
    Launches &launches = binding.launches;
    if (launches.graph) device.driver->release_graph(device, launches.graph);
    launches.graph = nullptr;
    const scalide_status status = device.driver->capture(device, launches.rows, launches.used, &launches.graph);
    if (status == SCALIDE_OK) return status;
    start_message(binding.context) << binding.program->name << ": cannot capture a run: " << device.failure
                                   << ". Use scalide_run without scalide_capture.";
    return status;
}

} // namespace scalide

scalide_status scalide_capture(scalide_binding *binding) {
    using namespace scalide;
    const Entry entry(context_of(binding), "scalide_capture");
    if (entry.status() != SCALIDE_OK) return entry.status();
    const FloatEnvironment environment;
    const Device *device = binding->context->device;
    if (device && device->driver->capture) return capture(*binding);
    start_message(binding->context) << binding->program->name << ": device " << scalide_device_name(binding->program->device)
                                    << " does not support graphs, so a run cannot be captured. Use scalide_run without scalide_capture.";
    return SCALIDE_UNSUPPORTED;
}

// A run on a device appends the launches that bind has recorded to the device's queue. In a loop it records the launches of the steps
// again, because each step of the loop has other addresses.
#include "base/clock.h"
#include "base/float_environment.h"
#include "bind/extent.h"
#include "bind/recorder.h"
#include "context/entry.h"
#include "run/collectives.h"
#include "run/show.h"
#include "run/step_runner.h"
#include <algorithm>

namespace scalide {

namespace {

/// Launches, waits for the end and sets *seconds to the time that it took.
scalide_status time(Device &device, const Launch *launches, int32_t count, int32_t *done, double *seconds) {
    if (device.driver->time) return device.driver->time(device, launches, count, done, seconds);
    const double start = now();
    scalide_status status = device.driver->launch(device, launches, count, done);
    if (status == SCALIDE_OK) status = device.driver->synchronise(device);
    *seconds = now() - start;
    return status;
}

/// Runs steps on a device (see StepRunner).
class Gpu {
public:
    // A matmul of a library may need as much as bind knows of the buffers of a plan.
    static constexpr uint64_t read_alignment = memory_alignment, write_alignment = memory_alignment;

    Gpu(scalide_binding &binding, const Trace &trace) : binding_(binding), device_(*binding.context->device), trace_(trace) {}

    bool run_steps(int32_t first, int32_t end) {
        for (int32_t step = first; step < end && binding_.has_collectives; ++step) {
            if (!binding_.program->steps[step].collective) continue;
            if (!run_kernels(first, step) || !run_collective(step)) return false;
            first = step + 1;
        }
        return run_kernels(first, end);
    }
    /// Runs steps that are no collectives.
    bool run_kernels(int32_t first, int32_t end) {
        for (int32_t step = first; step < end; ++step) {
            binding_.current_step = step;
            if (binding_.layout->steps[step].is_moved) Recorder(binding_).record_again(step);
            if (binding_.context->run_status.load(std::memory_order_relaxed) != SCALIDE_OK) return false;
            if (trace_.is_on() && !run_traced(step)) return false;
        }
        if (trace_.is_on() || first >= end) return true;
        binding_.current_step = first;
        return launch(begin_of(first), binding_.launches.ends[end - 1], nullptr);
    }
    /// Runs all steps, between the copies of arrays with strides.
    bool run() {
        return launch(0, binding_.launches.copies_in, nullptr) && StepRunner<Gpu>(binding_, *this).run() &&
               launch(begin_of(binding_.program->step_count), binding_.launches.used, nullptr);
    }
    bool replay() { return check(device_.driver->replay(device_, binding_.launches.graph)); }

    void point(int32_t view, void *memory) { binding_.descriptors[view].device = reinterpret_cast<uintptr_t>(memory); }
    bool copy(void *to, const void *from, uint64_t bytes) { return bytes == 0 || check(device_.driver->copy(device_, to, from, bytes)); }
    bool clear(void *memory, uint64_t bytes) { return check(device_.driver->fill(device_, memory, 0, 1, bytes)); }
    bool read(const void *memory, void *value, uint64_t bytes) { return check(device_.driver->copy_out(device_, value, memory, bytes)); }
    bool write(void *memory, int32_t value) {
        return check(device_.driver->fill(device_, memory, static_cast<uint32_t>(value), sizeof(value), 1));
    }
    bool show_loop_step(const scalide_block &block) {
        return !trace_.call || for_each_of_loop_step(block, trace_, [this](int32_t buffer) { return show(buffer); });
    }
    bool show_results(const scalide_block &block) {
        return !trace_.call || for_each_result(block, [this](int32_t buffer) { return show(buffer); });
    }

private:
    bool check(scalide_status status) {
        if (status == SCALIDE_OK) return true;
        char words[sizeof(binding_.context->failure)];
        Text(words, sizeof(words)) << device_.failure << ". " << way_out(status);
        fail_run(binding_.context, status, words);
        return false;
    }

    int32_t begin_of(int32_t step) const { return step > 0 ? binding_.launches.ends[step - 1] : binding_.launches.copies_in; }

    /// Launches the entries [begin, end). If `seconds` is not NULL, waits for their end and sets it to the time that they took.
    bool launch(int32_t begin, int32_t end, double *seconds) {
        const Launch *launches = binding_.launches.rows + begin;
        int32_t done = 0;
        if (begin == end && !seconds) return true;
        const scalide_status status =
            seconds ? time(device_, launches, end - begin, &done, seconds) : device_.driver->launch(device_, launches, end - begin, &done);
        if (status == SCALIDE_OK) return true;
        int32_t &step = binding_.current_step;
        while (step + 1 < binding_.program->step_count && binding_.launches.ends[step] <= begin + done) ++step;
        return check(status);
    }

    /// The ranks exchange memory of the host. The copies wait for all launches before.
    bool run_collective(int32_t step) {
        binding_.current_step = step;
        const double begin = trace_.seconds ? now() : 0;
        const scalide_collective &collective = *binding_.program->steps[step].collective;
        const bool is_alone = group_of(binding_, collective.group).transport.ranks == 1;
        if (!(is_alone ? copy_alone(binding_, collective, *this) : exchange_images(collective))) return false;
        if (trace_.seconds && !check(device_.driver->synchronise(device_))) return false;
        if (trace_.seconds) trace_.seconds[step] += now() - begin;
        return !trace_.call || for_each_new_buffer(binding_, step, [this](int32_t buffer) { return show(buffer); });
    }

    bool exchange_images(const scalide_collective &collective) {
        const Staging staging = staging_of(binding_, collective);
        const auto fetch = [this](const MovedArray &array) {
            return array.bytes.from == 0 || read(binding_.memory[array.buffers.from], array.from, array.bytes.from);
        };
        const auto store = [this](const MovedArray &array) {
            return array.bytes.to == 0 ||
                   check(device_.driver->copy_in(device_, binding_.memory[array.buffers.to], array.to, array.bytes.to));
        };
        return for_each_array(binding_, collective, staging, fetch) && exchange(binding_, collective, staging) &&
               for_each_array(binding_, collective, staging, store);
    }

    bool run_traced(int32_t step) {
        double seconds = 0;
        if (!launch(begin_of(step), binding_.launches.ends[step], trace_.seconds ? &seconds : nullptr)) return false;
        if (trace_.seconds) trace_.seconds[step] += seconds;
        return !trace_.call || for_each_new_buffer(binding_, step, [this](int32_t buffer) { return show(buffer); });
    }

    /// Copies a buffer to the host, where the trace can read it.
    bool show(int32_t index) {
        const scalide_buffer &buffer = binding_.program->buffers[index];
        const uint64_t bytes = bytes_of(*binding_.program, *binding_.layout, index);
        void *copy = allocate(binding_.context->allocator, bytes);
        if (!copy) {
            char words[256];
            Text(words, sizeof(words)) << "cannot allocate " << bytes << " bytes for the trace of " << buffer.name
                                       << ": out of memory. Bind smaller arrays.";
            fail_run(binding_.context, SCALIDE_OUT_OF_MEMORY, words);
            return false;
        }
        const bool good = bytes == 0 || read(binding_.memory[index], copy, bytes);
        if (good) scalide::show(binding_, trace_, index, describe(buffer, binding_.symbols, copy));
        release(binding_.context->allocator, copy);
        return good;
    }

    scalide_binding &binding_;
    Device &device_;
    const Trace &trace_;
};

} // namespace

void run_on_device(scalide_binding &binding, const Trace &trace) {
    Gpu gpu(binding, trace);
    binding.launches.graph && !trace.is_on() ? gpu.replay() : gpu.run();
}

namespace {

/// A graph holds at most so many launches. One of them takes about 200 bytes of the driver's memory.
constexpr int64_t most_captured = 1 << 16;

bool has_fixed_steps(const scalide_program &program) {
    const auto is_fixed = [](const scalide_block &block) { return block.kind == SCALIDE_BLOCK_LOOP && block.condition < 0; };
    return std::all_of(program.blocks, program.blocks + program.block_count, is_fixed);
}

/// Returns the number of launches of a run whose loops have fixed numbers of steps, or more than `most_captured`.
int64_t count_launches(const scalide_binding &binding) {
    const scalide_program &program = *binding.program;
    int64_t all = 0;
    for (int32_t step = 0; step < program.step_count; ++step) {
        int64_t launches = binding.launches.ends[step] - (step > 0 ? binding.launches.ends[step - 1] : 0);
        for (int32_t i = 0; i < program.block_count && launches <= most_captured; ++i)
            if (program.blocks[i].first_step <= step && step < program.blocks[i].end_step) launches *= binding.layout->blocks[i].length;
        all += launches;
        if (all > most_captured) break;
    }
    return all;
}

scalide_status run_captured(void *data) {
    scalide_binding &binding = *static_cast<scalide_binding *>(data);
    const Trace none = {};
    Gpu(binding, none).run();
    return static_cast<scalide_status>(binding.context->run_status.exchange(SCALIDE_OK, std::memory_order_relaxed));
}

} // namespace

scalide_status capture(scalide_binding &binding) {
    Device &device = *binding.context->device;
    Launches &launches = binding.launches;
    if (launches.graph) device.driver->release_graph(device, launches.graph);
    launches.graph = nullptr;
    const scalide_status status = device.driver->capture(device, run_captured, &binding, &launches.graph);
    if (status == SCALIDE_OK) return status;
    start_message(binding.context) << binding.program->name
                                   << ": cannot capture a run: " << (is_stop(status) ? "the application interrupted it" : device.failure)
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
    const bool has_graphs = device && device->driver->capture, is_fixed = has_fixed_steps(*binding->program);
    const bool is_whole = !binding->has_collectives;
    if (has_graphs && is_fixed && is_whole && count_launches(*binding) <= most_captured) return capture(*binding);
    Text text = start_message(binding->context) << binding->program->name << ": ";
    if (!has_graphs) {
        text << "device " << scalide_device_name(binding->program->device) << " does not support graphs";
    } else if (!is_whole) {
        text << "the ranks exchange arrays on the host";
    } else if (is_fixed) {
        text << "its loops have more than " << most_captured << " launches";
    } else {
        text << "the host decides which steps of the loops and branches run";
    }
    text << ", so a run cannot be captured. Use scalide_run without scalide_capture.";
    return SCALIDE_UNSUPPORTED;
}

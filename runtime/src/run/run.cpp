#include "base/clock.h"
#include "base/float_environment.h"
#include "bind/extent.h"
#include "bind/prepared.h"
#include "bind/views.h"
#include "context/copy.h"
#include "context/entry.h"
#include "run/collectives.h"
#include "run/non_finite.h"
#include "run/show.h"
#include "run/step_runner.h"
#include <algorithm>
#include <cstring>
#include <limits>

using namespace scalide;

namespace {

/// Runs steps on the CPU (see StepRunner).
class Cpu {
public:
    static constexpr uint64_t read_alignment = 1, write_alignment = memory_alignment; // kernels may write whole vectors

    Cpu(scalide_binding &binding, const Trace &trace) : binding_(binding), trace_(trace) {}

    bool run_steps(int32_t first, int32_t end) {
        for (int32_t step = first; step < end; ++step) {
            binding_.current_step = step;
            if (!(trace_.is_on() ? run_traced(step) : call(step))) return false;
        }
        return true;
    }
    void point(int32_t view, void *memory) { binding_.descriptors[view].host = static_cast<uint8_t *>(memory); }
    bool copy(void *to, const void *from, uint64_t bytes) {
        if (bytes > 0) std::memcpy(to, from, bytes);
        return true;
    }
    bool clear(void *memory, uint64_t bytes) {
        std::memset(memory, 0, bytes);
        return true;
    }
    bool read(const void *memory, void *value, uint64_t bytes) { return copy(value, memory, bytes); }
    bool write(void *memory, int32_t value) { return copy(memory, &value, sizeof(value)); }
    bool show_loop_step(const scalide_block &block) {
        return !trace_.call || for_each_of_loop_step(block, trace_, [this](int32_t buffer) { return show(buffer); });
    }
    bool show_results(const scalide_block &block) {
        return !trace_.call || for_each_result(block, [this](int32_t buffer) { return show(buffer); });
    }

private:
    bool is_good() const { return binding_.context->run_status.load(std::memory_order_relaxed) == SCALIDE_OK; }

    bool call(int32_t step) {
        const scalide_kernel kernel = binding_.program->steps[step].kernel;
        if (!kernel) return run_collective(*binding_.program->steps[step].collective);
        const int error = kernel(binding_.arguments + binding_.layout->steps[step].argument);
        if (error != 0) {
            char text[64];
            Text(text, sizeof(text)) << "the kernel failed with error " << int32_t(error) << '.';
            fail_run(binding_.context, SCALIDE_KERNEL_FAILED, text);
        }
        return is_good();
    }

    bool run_collective(const scalide_collective &collective) {
        if (group_of(binding_, collective.group).transport.ranks == 1) return copy_alone(binding_, collective, *this);
        return exchange(binding_, collective, staging_of(binding_, collective));
    }

    bool run_traced(int32_t step) {
        const double begin = trace_.seconds ? now() : 0;
        if (!call(step)) return false;
        if (trace_.seconds) trace_.seconds[step] += now() - begin;
        return !trace_.call || for_each_new_buffer(binding_, step, [this](int32_t buffer) { return show(buffer); });
    }

    bool show(int32_t index) {
        const scalide_buffer &buffer = binding_.program->buffers[index];
        if (buffer.storage == SCALIDE_STORAGE_DATA && binding_.data[buffer.index].access == Access::strided) {
            show_strided(index);
        } else {
            scalide::show(binding_, trace_, index, describe(buffer, binding_.symbols, binding_.memory[index]));
        }
        return is_good();
    }

    /// Shows a dense copy of an array with strides.
    void show_strided(int32_t index) {
        const scalide_program &program = *binding_.program;
        void *memory = allocate(binding_.context->allocator, scalide::bytes_of(program, *binding_.layout, index));
        if (!memory) return fail_run(binding_.context, SCALIDE_OUT_OF_MEMORY, "out of memory: cannot copy a result for the trace.");
        const scalide_array copy = describe(program.buffers[index], binding_.symbols, memory);
        copy_elements(binding_.user_context, binding_.arrays[program.buffers[index].index], copy);
        scalide::show(binding_, trace_, index, copy);
        release(binding_.context->allocator, memory);
    }

    scalide_binding &binding_;
    const Trace &trace_;
};

void run_steps(scalide_binding &binding, const Trace &trace) {
    const auto copy = [&](const scalide_array &from, const scalide_array &to) { copy_elements(binding.user_context, from, to); };
    for_each_copy_in(binding, copy);
    Cpu cpu(binding, trace);
    if (StepRunner<Cpu>(binding, cpu).run()) for_each_copy_out(binding, copy);
}

/// Writes the message of a failed run, with the step of the program and the steps of its loops. The ranks of all groups but `spared` learn
/// of the failure.
scalide_status fail(scalide_binding &binding, scalide_status status, const Group *spared) {
    Text text = start_message(binding.context) << binding.program->name;
    if (!is_stop(status) && binding.program->step_count > 0 && binding.current_step >= 0) {
        text << '.' << binding.program->steps[binding.current_step].name << ": ";
        if (binding.loops.current >= 0) print_loops(text << "in ", binding, true) << ": ";
    } else {
        text << ": ";
    }
    text << binding.context->failure;
    report(binding.context, status);
    if (!is_stop(status)) binding.status = status;
    if (binding.has_collectives) abort_groups(binding, binding.context->message, spared);
    return status;
}

scalide_status finish(scalide_binding &binding, const Group *spared = nullptr) {
    scalide_context *context = binding.context;
    level_scratch(context);
    const auto status = static_cast<scalide_status>(context->run_status.exchange(SCALIDE_OK, std::memory_order_relaxed));
    return status == SCALIDE_OK ? status : fail(binding, status, spared);
}

/// After a failure, the values that the binding keeps are not known.
scalide_status refuse_failed(const scalide_binding &binding) {
    start_message(binding.context) << binding.program->name << ": an earlier run of this binding failed ("
                                   << scalide_status_string(binding.status) << "). Destroy the binding, and bind again.";
    return binding.status;
}

/// The context must have been entered.
scalide_status run(scalide_binding &binding, const Trace &trace) {
    const FloatEnvironment environment;
    const scalide_status taken = take_next_constants(binding);
    if (taken != SCALIDE_OK && binding.has_collectives) abort_groups(binding, binding.context->message, nullptr);
    if (taken != SCALIDE_OK) return taken;
    if (binding.status != SCALIDE_OK) return refuse_failed(binding);
    binding.loops.current = -1;
    binding.current_step = 0;
    const Group *differing = nullptr;
    if (binding.has_collectives && !binding.is_compared && !compare_ranks(binding, &differing)) return finish(binding, differing);
    if (binding.context->device) {
        run_on_device(binding, trace);
        return finish(binding);
    }
    Worker &caller = binding.context->workers[0];
    jmp_buf here;
    caller.escape = &here;
    if (_setjmp(here) == 0) {
        run_steps(binding, trace);
    } else {
        caller.scratch.rewind(nullptr);
    }
    caller.escape = nullptr;
    return finish(binding);
}

/// Returns the size of the buffers of a collective, each counted once.
uint64_t bytes_of(const scalide_binding &binding, const scalide_collective &collective) {
    uint64_t bytes = 0;
    for (int32_t i = 0; i < collective.count; ++i) {
        const int32_t from = collective.arrays[i].from;
        const auto is_same = [=](const scalide_moved &other) { return other.from == from; };
        if (std::none_of(collective.arrays, collective.arrays + i, is_same))
            bytes += scalide::bytes_of(*binding.program, *binding.layout, from);
        bytes += scalide::bytes_of(*binding.program, *binding.layout, collective.arrays[i].to);
    }
    return bytes;
}

/// Returns the size of the buffers of a step, each counted once.
uint64_t bytes_of(const scalide_binding &binding, const scalide_step &step) {
    if (step.collective) return bytes_of(binding, *step.collective);
    uint64_t bytes = 0;
    for (int32_t i = 0; i < step.operand_count; ++i) {
        const scalide_operand &operand = step.operands[i];
        const auto is_same = [&](const scalide_operand &other) { return other.kind == operand.kind && other.index == operand.index; };
        if (operand.kind == SCALIDE_OPERAND_SYMBOL || std::find_if(step.operands, step.operands + i, is_same) != step.operands + i)
            continue;
        bytes += scalide::bytes_of(*binding.program, *binding.layout, operand.index);
    }
    return bytes;
}

/// The code that looks at the results of a checked run.
struct Watch {
    scalide_binding &binding;
    scalide_non_finite *first;
};

void note_non_finite(void *user, const scalide_traced *buffer, const scalide_array *array) {
    const Watch &watch = *static_cast<const Watch *>(user);
    if (watch.first->buffer || !has_non_finite(*array)) return;
    const int32_t step = watch.binding.current_step;
    *watch.first = {buffer->name, watch.binding.program->steps[step].name, static_cast<size_t>(step), nullptr};
    if (!buffer->loops) return;
    Text(watch.binding.loops.words, sizeof(watch.binding.loops.words)) << buffer->loops;
    watch.first->loops = watch.binding.loops.words;
}

} // namespace

scalide_status scalide_run(scalide_binding *binding) {
    const Entry entry(context_of(binding), "scalide_run");
    return entry.status() == SCALIDE_OK ? run(*binding, {}) : entry.status();
}

scalide_status scalide_run_traced(scalide_binding *binding, scalide_trace trace, void *user) {
    const Entry entry(context_of(binding), "scalide_run_traced");
    return entry.status() == SCALIDE_OK ? run(*binding, {trace, user}) : entry.status();
}

scalide_status scalide_run_checked(scalide_binding *binding, scalide_non_finite *first) {
    const Entry entry(context_of(binding), "scalide_run_checked", {{"first", first}});
    if (entry.status() != SCALIDE_OK) return entry.status();
    *first = {};
    Watch watch = {*binding, first};
    return run(*binding, {note_non_finite, &watch, nullptr, true});
}

scalide_status scalide_profile(scalide_binding *binding, int32_t runs, scalide_step_profile *steps, size_t count) {
    const Entry entry(context_of(binding), "scalide_profile", {{"steps", steps || count == 0}});
    if (entry.status() != SCALIDE_OK) return entry.status();
    if (runs < 1 || count != scalide_step_count(binding)) {
        start_message(binding->context) << binding->program->name << ": scalide_profile needs at least 1 run and an entry for each of the "
                                        << uint64_t(scalide_step_count(binding)) << " steps, got " << runs << " runs and "
                                        << uint64_t(count) << " entries.";
        return SCALIDE_INVALID_ARGUMENT;
    }
    for (size_t i = 0; i < count; ++i)
        steps[i] = {binding->program->steps[i].name, std::numeric_limits<double>::infinity(),
                    bytes_of(*binding, binding->program->steps[i])};
    auto *seconds = static_cast<double *>(allocate(binding->context->allocator, sizeof(double) * count));
    if (!seconds) {
        start_message(binding->context) << binding->program->name << ": out of memory: cannot allocate the times of the steps.";
        return SCALIDE_OUT_OF_MEMORY;
    }
    scalide_status status = SCALIDE_OK;
    for (int32_t i = 0; i < runs && status == SCALIDE_OK; ++i) {
        std::fill_n(seconds, count, 0.0);
        status = run(*binding, {nullptr, nullptr, seconds});
        for (size_t step = 0; step < count && status == SCALIDE_OK; ++step)
            steps[step].seconds = std::min(steps[step].seconds, seconds[step]);
    }
    release(binding->context->allocator, seconds);
    return status;
}

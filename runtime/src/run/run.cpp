#include "base/clock.h"
#include "base/float_environment.h"
#include "bind/binding.h"
#include "bind/extent.h"
#include "bind/prepared.h"
#include "bind/views.h"
#include "context/copy.h"
#include "context/entry.h"
#include "run/non_finite.h"
#include <algorithm>
#include <limits>

using namespace scalide;

namespace {

/// Shows a dense copy of an array with strides.
void show_strided(const scalide_binding &binding, int32_t buffer, const Trace &trace) {
    const scalide_program &program = *binding.program;
    const uint64_t bytes = scalide::bytes_of(program, *binding.layout, buffer);
    void *memory = allocate(binding.context->allocator, bytes);
    if (!memory) return fail_run(binding.context, SCALIDE_OUT_OF_MEMORY, "out of memory: cannot copy a result for the trace.");
    const scalide_array copy = describe(program.buffers[buffer], binding.symbols, memory);
    copy_elements(binding.user_context, binding.arrays[program.buffers[buffer].index], copy);
    trace.show(program.buffers[buffer], copy);
    release(binding.context->allocator, memory);
}

bool show_new_buffers(const scalide_binding &binding, int32_t step, const Trace &trace) {
    const scalide_program &program = *binding.program;
    for (int32_t i = 0; i < program.buffer_count; ++i) {
        const scalide_buffer &buffer = program.buffers[i];
        if (buffer.first_step != step) continue;
        if (buffer.storage == SCALIDE_STORAGE_DATA && binding.data[buffer.index].access == Access::strided) {
            show_strided(binding, i, trace);
        } else {
            trace.show(buffer, describe(buffer, binding.symbols, binding.memory[i]));
        }
    }
    return binding.context->run_status.load(std::memory_order_relaxed) == SCALIDE_OK;
}

bool run_step(scalide_binding &binding, void **arguments) {
    scalide_context *context = binding.context;
    const int error = binding.program->steps[binding.current_step].kernel(arguments);
    if (error != 0) {
        char text[64];
        Text(text, sizeof(text)) << "the kernel failed with error " << int32_t(error) << '.';
        fail_run(context, SCALIDE_KERNEL_FAILED, text);
    }
    return context->run_status.load(std::memory_order_relaxed) == SCALIDE_OK;
}

void run_steps(scalide_binding &binding, const Trace &trace) {
    const scalide_program &program = *binding.program;
    void **arguments = binding.arguments;
    const auto copy = [&](const scalide_array &from, const scalide_array &to) { copy_elements(binding.user_context, from, to); };
    for_each_copy_in(binding, copy);
    for (int32_t step = 0; step < program.step_count; ++step) {
        binding.current_step = step;
        const double begin = trace.profile ? now() : 0;
        if (!run_step(binding, arguments)) return;
        if (trace.profile) keep_fastest(trace.profile[step], now() - begin);
        if (trace.call && !show_new_buffers(binding, step, trace)) return;
        arguments += 1 + program.steps[step].operand_count;
    }
    for_each_copy_out(binding, copy);
}

scalide_status finish(scalide_binding &binding) {
    scalide_context *context = binding.context;
    level_scratch(context);
    const auto status = static_cast<scalide_status>(context->run_status.load(std::memory_order_relaxed));
    if (status != SCALIDE_OK) {
        context->run_status.store(SCALIDE_OK, std::memory_order_relaxed);
        start_message(context) << binding.program->name << '.' << binding.program->steps[binding.current_step].name << ": "
                               << context->failure;
        binding.status = report(context, status);
    }
    return status;
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
    if (taken != SCALIDE_OK) return taken;
    if (binding.status != SCALIDE_OK) return refuse_failed(binding);
    if (binding.context->device) return run_on_device(binding, trace);
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

/// Returns the size of the buffers of a step, each counted once.
uint64_t bytes_of(const scalide_binding &binding, const scalide_step &step) {
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
    const scalide_binding &binding;
    scalide_non_finite *first;
};

void note_non_finite(void *user, const scalide_traced *buffer, const scalide_array *array) {
    const Watch &watch = *static_cast<const Watch *>(user);
    if (watch.first->buffer || !has_non_finite(*array)) return;
    const int32_t step = watch.binding.current_step;
    *watch.first = {buffer->name, watch.binding.program->steps[step].name, static_cast<size_t>(step)};
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
    return run(*binding, {note_non_finite, &watch});
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
    scalide_status status = SCALIDE_OK;
    for (int32_t i = 0; i < runs && status == SCALIDE_OK; ++i) status = run(*binding, {nullptr, nullptr, steps});
    return status;
}

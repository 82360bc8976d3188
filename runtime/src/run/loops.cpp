#include "run/loops.h"
#include "context/entry.h"
#include <ctime>

namespace scalide {

namespace {

constexpr int64_t poll_nanoseconds = 10'000'000;

/// The coarse clock costs a few nanoseconds and jumps by a few milliseconds.
bool is_poll_due(scalide_context &context) {
    timespec time = {};
    clock_gettime(CLOCK_MONOTONIC_COARSE, &time);
    const int64_t now = int64_t(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
    if (now < context.poll.next) return false;
    context.poll.next = now + poll_nanoseconds;
    return true;
}

bool is_interrupted(scalide_context &context) {
    if (context.is_interrupted.load(std::memory_order_relaxed)) return context.is_interrupted.exchange(false);
    return context.poll.call && is_poll_due(context) && context.poll.call(context.poll.user) != 0;
}

} // namespace

int32_t loop_around(const scalide_program &program, int32_t block) {
    do block = program.blocks[block].parent;
    while (block >= 0 && program.blocks[block].kind == SCALIDE_BLOCK_SWITCH);
    return block;
}

Text &print_loops(Text &text, const scalide_binding &binding, bool has_lines) {
    const scalide_program &program = *binding.program;
    const char *separator = "step ";
    for (int32_t i = binding.loops.current; i >= 0; i = loop_around(program, i), separator = " in step ") {
        text << separator << binding.loops.steps[i] << " of ";
        text.name(program.blocks[i].name);
        if (has_lines && program.blocks[i].location) text << " (" << program.blocks[i].location << ')';
    }
    return text;
}

bool may_go_on(const scalide_binding &binding) {
    scalide_context &context = *binding.context;
    if (!context.is_interrupted.load(std::memory_order_relaxed) && !context.poll.call) return true;
    if (!is_interrupted(context)) return true;
    char words[640];
    Text text(words, sizeof(words));
    print_loops(text << "interrupted before ", binding, true)
        << ". The binding can run again, but arrays that a run updates must be written again first.";
    fail_run(&context, SCALIDE_INTERRUPTED, words);
    return false;
}

bool fail_at_limit(const scalide_binding &binding, int32_t block) {
    char words[640];
    Text text(words, sizeof(words));
    print_loops(text << "cannot begin ", binding, true)
        << ": the loop may have at most " << binding.program->blocks[block].most_steps
        << " steps, and its condition is still true. Set a larger max_steps, or change the condition or the arrays.";
    fail_run(binding.context, SCALIDE_STEP_LIMIT, words);
    return false;
}

} // namespace scalide

// A signal handler may call this, so it only sets a flag.
void scalide_interrupt(scalide_context *context) {
    if (context) context->is_interrupted.store(true);
}

scalide_status scalide_set_poll(scalide_context *context, int (*poll)(void *user), void *user) {
    using namespace scalide;
    const Entry entry(context, "scalide_set_poll");
    if (entry.status() == SCALIDE_OK) context->poll = {poll, user, 0};
    return entry.status();
}

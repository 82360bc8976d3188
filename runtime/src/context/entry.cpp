#include "context/entry.h"
#include <sched.h>

namespace scalide {

void enter_when_free(scalide_context &context) {
    while (!enter(context)) sched_yield();
}

bool is_used_elsewhere(const scalide_context &context) {
    const pthread_t user = context.user.load(std::memory_order_relaxed);
    return user != 0 && user != pthread_self();
}

void Entry::refuse(const char *function, const char *pointer) {
    start_message(context_) << function << ": " << pointer << " must not be NULL.";
    status_ = SCALIDE_INVALID_ARGUMENT;
}

} // namespace scalide

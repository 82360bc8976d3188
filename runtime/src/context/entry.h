#pragma once
#include "context/context.h"
#include <initializer_list>

namespace scalide {

/// A pointer that the caller of a function must pass.
struct Needed {
    const char *name;
    bool is_given;

    Needed(const char *name, const void *pointer) : name(name), is_given(pointer) {}
    /// `is_given`: false if the pointer is NULL although the function reads or writes what it points to.
    Needed(const char *name, bool is_given) : name(name), is_given(is_given) {}
};

/// Marks the context as used by the calling thread. Returns false if another thread uses it. The thread that uses a context may enter it
/// again, because functions of the runtime call each other and callbacks may call them.
inline bool enter(scalide_context &context) {
    const pthread_t self = pthread_self();
    if (context.user.load(std::memory_order_relaxed) == self) {
        ++context.entries;
        return true;
    }
    pthread_t none = 0;
    return context.user.compare_exchange_strong(none, self, std::memory_order_acquire, std::memory_order_relaxed);
}

/// The same, but waits until the other thread has left. It is for functions that release something, which cannot return an error.
void enter_when_free(scalide_context &context);

inline void leave(scalide_context &context) {
    if (context.entries > 0) {
        --context.entries;
    } else {
        context.user.store(0, std::memory_order_release);
    }
}

/// True if a thread other than the caller uses the context.
bool is_used_elsewhere(const scalide_context &context);

/// The beginning and the end of a function of the C interface that uses a context. The function returns at once if the status is not
/// SCALIDE_OK. Then the context has a message, except after SCALIDE_BUSY: the message belongs to the other thread.
class Entry {
public:
    /// Without a context the status is SCALIDE_INVALID_ARGUMENT.
    Entry(scalide_context *context, const char *function, std::initializer_list<Needed> needed = {}) : context_(context) {
        if (!context) {
            status_ = SCALIDE_INVALID_ARGUMENT;
        } else if (!enter(*context)) {
            status_ = SCALIDE_BUSY;
            context_ = nullptr;
        } else {
            for (const Needed &pointer : needed)
                if (!pointer.is_given && status_ == SCALIDE_OK) refuse(function, pointer.name);
        }
    }
    Entry(const Entry &) = delete;
    Entry &operator=(const Entry &) = delete;
    ~Entry() {
        if (context_) leave(*context_);
    }

    scalide_status status() const { return status_; }

private:
    void refuse(const char *function, const char *pointer);

    scalide_context *context_; ///< NULL: not entered
    scalide_status status_ = SCALIDE_OK;
};

} // namespace scalide

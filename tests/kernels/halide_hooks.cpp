#include "kernels/guarded_memory.h"
#include <HalideRuntime.h>
#include <map>
#include <mutex>
#include <thread>

// What a kernel needs from its surroundings, as the runtime gives it; scratch is guarded and poisoned.

namespace scalide {
namespace {

class Scratch {
public:
    void *take(size_t bytes) {
        constexpr size_t alignment = 64; // of the widest vector
        GuardedMemory memory(bytes, alignment);
        const std::lock_guard lock(mutex_);
        void *place = memory.data();
        taken_.emplace(place, std::move(memory));
        return place;
    }
    void give_back(void *place) {
        const std::lock_guard lock(mutex_);
        taken_.erase(place);
    }

private:
    std::mutex mutex_;
    std::map<void *, GuardedMemory> taken_;
};

Scratch &scratch() {
    static Scratch all;
    return all;
}

} // namespace
} // namespace scalide

extern "C" {
int halide_do_par_for(void *context, int (*task)(void *, int, uint8_t *), int min, int size, uint8_t *closure) {
    if (size <= 1) {
        return size == 1 ? task(context, min, closure) : 0;
    }
    std::thread other([&] {
        for (int i = size / 2; i < size; i++) {
            task(context, min + i, closure);
        }
    });
    for (int i = 0; i < size / 2; i++) {
        task(context, min + i, closure);
    }
    other.join();
    return 0;
}
void *halide_malloc(void *, size_t size) { return scalide::scratch().take(size); }
void halide_free(void *, void *pointer) { scalide::scratch().give_back(pointer); }
}

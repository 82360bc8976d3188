#include "run/memory.h"
#include <cstdlib>

namespace scalide {

void *allocate(uint64_t bytes) {
    if (bytes > PTRDIFF_MAX - memory_alignment) return nullptr;
    return std::aligned_alloc(memory_alignment, round_up(bytes + (bytes == 0), memory_alignment));
}

void release(void *memory) { std::free(memory); }

} // namespace scalide

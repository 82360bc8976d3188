#include "base/memory.h"
#include <cstdlib>

namespace scalide {

void *allocate(uint64_t bytes) {
    if (bytes > PTRDIFF_MAX - memory_alignment) return nullptr;
    return std::aligned_alloc(memory_alignment, round_up(bytes + (bytes == 0), memory_alignment));
}

void release(void *memory) { std::free(memory); }

void *allocate(const scalide_allocator &allocator, uint64_t bytes) {
    if (!allocator.allocate) return allocate(bytes);
    return bytes > PTRDIFF_MAX - memory_alignment ? nullptr : allocator.allocate(allocator.user, bytes + (bytes == 0), memory_alignment);
}

void release(const scalide_allocator &allocator, void *memory) {
    if (!allocator.release) return release(memory);
    if (memory) allocator.release(allocator.user, memory);
}

} // namespace scalide

#pragma once
#include "scalide/scalide.h"
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace scalide {

/// Alignment of the arena, of scratch memory and of the runtime's own tables: a cache line and a vector register.
constexpr size_t memory_alignment = 64;

constexpr uint64_t round_up(uint64_t value, uint64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

/// Returns 64-byte aligned memory, or nullptr. 0 bytes give a valid pointer.
void *allocate(uint64_t bytes);
void release(void *memory);
/// The same with the memory of the application, if the allocator has functions.
void *allocate(const scalide_allocator &allocator, uint64_t bytes);
void release(const scalide_allocator &allocator, void *memory);

/// Splits one block into tables. Use it once without memory to compute the size, and again with memory.
class Carver {
public:
    explicit Carver(void *memory = nullptr) : memory_(static_cast<char *>(memory)) {}

    template<typename T>
    T *take(uint64_t count) {
        static_assert(std::is_trivially_destructible<T>::value, "tables are released without destructors");
        T *table = memory_ ? reinterpret_cast<T *>(memory_ + used_) : nullptr;
        used_ = round_up(used_ + count * sizeof(T), memory_alignment);
        return table;
    }
    uint64_t bytes() const { return used_; }

private:
    char *memory_;
    uint64_t used_ = 0;
};

} // namespace scalide

#pragma once
#include "base/memory.h"

namespace scalide {

/// Memory of one thread for temporaries of kernels: a stack in chunks that are kept until the end. Blocks may be freed in any order. The
/// space of a block is reused when all later blocks are free.
class Scratch {
public:
    Scratch() = default;
    explicit Scratch(const scalide_allocator &allocator) : allocator_(allocator) {}

    /// The largest size of a chunk. It ensures that no sum of capacities and headers overflows 64 bits.
    static constexpr uint64_t most_bytes = uint64_t(1) << 62;

    /// Creates a chunk of at least this capacity as the first one. Call it only while nothing is allocated. Returns false if memory is
    /// lacking.
    bool reserve(uint64_t capacity);
    /// Returns 64-byte aligned memory with an additional cache line on both sides, or nullptr if memory is lacking.
    void *take(uint64_t bytes);
    void give_back(void *memory);

    /// `rewind(mark)` frees everything that was allocated after `mark`.
    void *mark() const { return top_; }
    void rewind(void *mark);

    /// Returns the largest number of bytes in use at once, including overhead.
    uint64_t peak() const { return peak_; }
    /// Returns the number of chunks that have been allocated so far.
    int chunks_made() const { return chunks_made_; }
    void destroy();

private:
    struct Chunk {
        Chunk *next;
        uint64_t capacity, used;
    };
    struct Block {
        Block *previous;
        Chunk *chunk;
        uint64_t bytes;
        bool is_free;
    };
    static_assert(sizeof(Block) <= memory_alignment && sizeof(Chunk) <= memory_alignment, "headers take one line each");

    Chunk *make_chunk(uint64_t capacity);
    Chunk *chunk_for(uint64_t bytes);
    void pop();

    scalide_allocator allocator_ = {};
    Chunk *first_ = nullptr, *current_ = nullptr;
    Block *top_ = nullptr;
    uint64_t used_ = 0, peak_ = 0;
    int chunks_made_ = 0;
};

} // namespace scalide

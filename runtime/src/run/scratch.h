#pragma once
#include "run/memory.h"

namespace scalide {

/// Memory of one thread for temporaries of kernels: a stack in chunks that are kept until the end. Blocks may be freed in any order. The
/// space of a block is reused when all later blocks are free.
class Scratch {
public:
    /// Of a chunk, so that no sum of capacities and headers leaves 64 bits.
    static constexpr uint64_t most_bytes = uint64_t(1) << 62;

    /// Makes one chunk of at least this capacity the first one. Only while nothing is allocated. False: out of memory.
    bool reserve(uint64_t capacity);
    /// 64-byte aligned, with a cache line of slack on both sides. nullptr: out of memory.
    void *take(uint64_t bytes);
    void give_back(void *memory);

    /// `rewind(mark)` frees everything that was allocated after `mark`.
    void *mark() const { return top_; }
    void rewind(void *mark);

    /// The most bytes ever in use at once, overhead included.
    uint64_t peak() const { return peak_; }
    /// Chunks that were allocated so far.
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

    Chunk *first_ = nullptr, *current_ = nullptr;
    Block *top_ = nullptr;
    uint64_t used_ = 0, peak_ = 0;
    int chunks_made_ = 0;
};

} // namespace scalide

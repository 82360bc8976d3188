#include "base/scratch.h"

namespace scalide {

Scratch::Chunk *Scratch::make_chunk(uint64_t capacity) {
    if (capacity > most_bytes) return nullptr;
    auto *chunk = static_cast<Chunk *>(allocate(allocator_, memory_alignment + capacity));
    if (!chunk) return nullptr;
    *chunk = {nullptr, capacity, 0};
    ++chunks_made_;
    return chunk;
}

bool Scratch::reserve(uint64_t capacity) {
    if (first_ && !first_->next && first_->capacity >= capacity) return true;
    Chunk *chunk = make_chunk(capacity);
    if (!chunk) return false;
    const uint64_t peak = peak_;
    const int made = chunks_made_;
    destroy();
    first_ = current_ = chunk;
    peak_ = peak;
    chunks_made_ = made;
    return true;
}

// Chunks after the current one are empty.
Scratch::Chunk *Scratch::chunk_for(uint64_t bytes) {
    Chunk *last = nullptr;
    for (Chunk *chunk = current_; chunk; chunk = chunk->next) {
        if (chunk->capacity - chunk->used >= bytes) return chunk;
        last = chunk;
    }
    const uint64_t doubled = last ? 2 * last->capacity : 0;
    Chunk *chunk = make_chunk(bytes > doubled ? bytes : doubled);
    if (!chunk) return nullptr;
    (last ? last->next : first_) = chunk;
    return chunk;
}

void *Scratch::take(uint64_t bytes) {
    if (bytes > most_bytes / 2) return nullptr;
    const uint64_t needed = memory_alignment + round_up(bytes, memory_alignment) + memory_alignment; // header, data, slack
    Chunk *chunk = chunk_for(needed);
    if (!chunk) return nullptr;
    char *start = reinterpret_cast<char *>(chunk) + memory_alignment + chunk->used;
    auto *block = reinterpret_cast<Block *>(start);
    *block = {top_, chunk, needed, false};
    chunk->used += needed;
    current_ = chunk;
    top_ = block;
    used_ += needed;
    if (used_ > peak_) peak_ = used_;
    return start + memory_alignment;
}

void Scratch::pop() {
    top_->chunk->used -= top_->bytes;
    used_ -= top_->bytes;
    top_ = top_->previous;
    current_ = top_ ? top_->chunk : first_;
}

void Scratch::give_back(void *memory) {
    if (!memory) return;
    reinterpret_cast<Block *>(static_cast<char *>(memory) - memory_alignment)->is_free = true;
    while (top_ && top_->is_free) pop();
}

void Scratch::rewind(void *mark) {
    while (top_ != mark) pop();
}

void Scratch::destroy() {
    while (first_) {
        Chunk *next = first_->next;
        release(allocator_, first_);
        first_ = next;
    }
    *this = Scratch(allocator_);
}

} // namespace scalide

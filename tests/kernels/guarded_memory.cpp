#include "kernels/guarded_memory.h"
#include <algorithm>
#include <new>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>

namespace scalide {

namespace {

constexpr uint8_t poison = 0xA5; ///< a small negative float, an odd integer, of bf16 and f8 too

size_t page_size() { return size_t(sysconf(_SC_PAGESIZE)); }

bool is_poison(uint8_t byte) { return byte == poison; }

} // namespace

GuardedMemory::GuardedMemory(size_t bytes, size_t alignment, Guard guard) : bytes_(bytes) {
    const size_t page = page_size(), body = (bytes + page - 1) / page * page;
    size_ = body + 2 * page;
    void *memory = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    base_ = static_cast<uint8_t *>(memory);
    std::fill_n(base_ + page, body, poison);
    mprotect(base_, page, PROT_NONE);
    mprotect(base_ + page + body, page, PROT_NONE);
    data_ = base_ + page + (guard == Guard::before ? 0 : (body - bytes) / alignment * alignment);
}

GuardedMemory::GuardedMemory(GuardedMemory &&other) noexcept
    : base_(std::exchange(other.base_, nullptr)), data_(other.data_), size_(other.size_), bytes_(other.bytes_) {}

GuardedMemory::~GuardedMemory() {
    if (base_) munmap(base_, size_);
}

bool GuardedMemory::is_intact() const {
    const uint8_t *end = base_ + size_ - page_size();
    return std::all_of(static_cast<const uint8_t *>(base_ + page_size()), static_cast<const uint8_t *>(data_), is_poison) &&
           std::all_of(static_cast<const uint8_t *>(data_ + bytes_), end, is_poison);
}

} // namespace scalide

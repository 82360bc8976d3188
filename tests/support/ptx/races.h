#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>

namespace scalide::ptx {

/// An access of a thread. Its time counts the barriers of its block.
struct Touch {
    static constexpr uint32_t nobody = UINT32_MAX, several = UINT32_MAX - 1;
    uint32_t block = nobody, thread = nobody, time = 0;

    /// True if this access is ordered before `other`: by a barrier, or because one thread makes both.
    bool is_before(const Touch &other) const {
        return block == nobody || (block == other.block && (thread == other.thread || time < other.time));
    }
};

/// Records which thread accessed which byte of a memory, to detect races. Threads of different blocks are unordered. Threads of one block
/// are ordered only by barriers, although the emulator runs them one after the other.
class Races {
public:
    /// Throw std::runtime_error if another thread writes the same bytes without a barrier between, or reads bytes that are written. A write
    /// counts only if it changes the bytes.
    void read(uint64_t at, size_t bytes, const Touch &by);
    /// A read of memory that no thread may write (ld.global.nc).
    void read_constant(uint64_t at, size_t bytes, const Touch &by);
    void write(uint64_t at, size_t bytes, const Touch &by);

private:
    struct Byte {
        Touch written, read;
    };
    static constexpr uint64_t page_bytes = 1024;
    Byte &byte(uint64_t at);

    std::unordered_map<uint64_t, std::unique_ptr<std::array<Byte, page_bytes>>> pages_;
    uint64_t last_number_ = UINT64_MAX;
    std::array<Byte, page_bytes> *last_ = nullptr;
};

} // namespace scalide::ptx

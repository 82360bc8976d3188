#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>

namespace scalide::ptx {

/// An access of a thread, in the times between barriers of its block.
struct Touch {
    static constexpr uint32_t nobody = UINT32_MAX, several = UINT32_MAX - 1;
    uint32_t block = nobody, thread = nobody, time = 0;

    /// A barrier, or that both are of one thread, puts this before another.
    bool is_before(const Touch &other) const {
        return block == nobody || (block == other.block && (thread == other.thread || time < other.time));
    }
};

/// Who touched the bytes of a memory. Nothing orders threads of different blocks, and those of one block only barriers do: not that this
/// machine runs them one after the other.
class Races {
public:
    /// Throw std::runtime_error where another thread writes the same bytes at no other time, or reads what is written. A write is one that
    /// changes something.
    void read(uint64_t at, size_t bytes, const Touch &by);
    /// Of what no thread writes at all (ld.global.nc).
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

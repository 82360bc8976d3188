#pragma once
#include <cstddef>
#include <cstdint>

namespace scalide {

/// Which end of an array lies at a page that cannot be touched.
enum class Guard { behind, before };

/// Memory between two pages that cannot be touched: at one of them but for what the alignment needs. It is poisoned, and so is what is left
/// of its own pages.
class GuardedMemory {
public:
    GuardedMemory(size_t bytes, size_t alignment, Guard guard = Guard::behind);
    GuardedMemory(GuardedMemory &&other) noexcept;
    ~GuardedMemory();

    uint8_t *data() const { return data_; }
    /// False when somebody wrote beside the array.
    bool is_intact() const;

private:
    uint8_t *base_, *data_;
    size_t size_, bytes_;
};

} // namespace scalide

#pragma once
#include <cstddef>
#include <cstdint>

namespace scalide {

/// The end of an array that touches an inaccessible page.
enum class Guard { behind, before };

/// Memory between two inaccessible pages. The array touches one of them, except for the gap that its alignment needs. The array and the
/// rest of its pages are filled with a poison pattern.
class GuardedMemory {
public:
    GuardedMemory(size_t bytes, size_t alignment, Guard guard = Guard::behind);
    GuardedMemory(GuardedMemory &&other) noexcept;
    ~GuardedMemory();

    uint8_t *data() const { return data_; }
    /// False if code wrote outside the array.
    bool is_intact() const;

private:
    uint8_t *base_, *data_;
    size_t size_, bytes_;
};

} // namespace scalide

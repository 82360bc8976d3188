#pragma once
#include <cstddef>
#include <cstdint>

namespace scalide {

/// Text written into the caller's memory; what does not fit is cut, but counted. Always terminated when there is memory.
class Text {
public:
    Text(char *memory, size_t capacity);

    Text &operator<<(const char *text);
    Text &operator<<(char character);
    Text &operator<<(int64_t number);
    Text &operator<<(int32_t number) { return *this << static_cast<int64_t>(number); }
    Text &operator<<(uint64_t number);

    /// Characters written or cut so far, without the terminating zero.
    size_t size() const { return size_; }

private:
    char *memory_;
    size_t capacity_, size_ = 0;
};

} // namespace scalide

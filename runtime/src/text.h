#pragma once
#include <cstddef>
#include <cstdint>

namespace scalide {

/// Text written into the caller's memory; what does not fit is cut, but counted. Always terminated when there is memory.
class Text {
public:
    /// A message shows control characters as `\x1b`: a terminal would obey them, and a name with a newline could begin a message of its
    /// own.
    enum class Use : uint8_t { data, message };

    Text(char *memory, size_t capacity, Use use = Use::data);

    Text &operator<<(const char *text);
    Text &operator<<(char character);
    Text &operator<<(int64_t number);
    Text &operator<<(int32_t number) { return *this << static_cast<int64_t>(number); }
    Text &operator<<(uint64_t number);
    /// A stranger's name: of a long one the beginning and `...`, so that the rest of the message has room.
    Text &name(const char *name);

    /// Characters written or cut so far, without the terminating zero.
    size_t size() const { return size_; }

private:
    void put(char character);

    char *memory_;
    size_t capacity_, size_ = 0;
    Use use_;
};

} // namespace scalide

#pragma once
#include <cstddef>
#include <cstdint>

namespace scalide {

/// Text written into the caller's memory. Text that does not fit is cut but counted. The text is zero-terminated unless the memory is
/// empty.
class Text {
public:
    /// A message shows control characters as `\x1b`. A terminal would obey them, and a name with a newline could look like a second
    /// message.
    enum class Use : uint8_t { data, message };

    Text(char *memory, size_t capacity, Use use = Use::data);

    Text &operator<<(const char *text);
    Text &operator<<(char character);
    Text &operator<<(int64_t number);
    Text &operator<<(int32_t number) { return *this << static_cast<int64_t>(number); }
    Text &operator<<(uint64_t number);
    /// Adds a name from outside. A long name is cut and ends with `...`, so that the rest of the message has room.
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

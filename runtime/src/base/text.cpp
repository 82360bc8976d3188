#include "base/text.h"

namespace scalide {

Text::Text(char *memory, size_t capacity, Use use) : memory_(memory), capacity_(memory ? capacity : 0), use_(use) {
    if (capacity_ > 0) memory_[0] = 0;
}

void Text::put(char character) {
    if (size_ + 1 < capacity_) {
        memory_[size_] = character;
        memory_[size_ + 1] = 0;
    }
    ++size_;
}

Text &Text::operator<<(char character) {
    constexpr char digits[] = "0123456789abcdef";
    const auto code = static_cast<unsigned char>(character);
    if (use_ == Use::data || (code >= ' ' && code != 0x7f)) {
        put(character);
    } else {
        put('\\');
        put('x');
        put(digits[code / 16]);
        put(digits[code % 16]);
    }
    return *this;
}

Text &Text::name(const char *name) {
    constexpr int most_bytes = 200;
    for (int i = 0; name[i]; ++i) {
        const bool begins_character = (static_cast<unsigned char>(name[i]) & 0xc0) != 0x80;
        if (i >= most_bytes && begins_character) return *this << "...";
        *this << name[i];
    }
    return *this;
}

Text &Text::operator<<(const char *text) {
    for (; *text; ++text) *this << *text;
    return *this;
}

Text &Text::operator<<(uint64_t number) {
    char digits[20];
    int count = 0;
    do {
        digits[count++] = static_cast<char>('0' + number % 10);
        number /= 10;
    } while (number > 0);
    while (count > 0) *this << digits[--count];
    return *this;
}

Text &Text::operator<<(int64_t number) {
    if (number >= 0) return *this << static_cast<uint64_t>(number);
    return *this << '-' << (~static_cast<uint64_t>(number) + 1);
}

} // namespace scalide

#include "text.h"

namespace scalide {

Text::Text(char *memory, size_t capacity) : memory_(memory), capacity_(memory ? capacity : 0) {
    if (capacity_ > 0) memory_[0] = 0;
}

Text &Text::operator<<(char character) {
    if (size_ + 1 < capacity_) {
        memory_[size_] = character;
        memory_[size_ + 1] = 0;
    }
    ++size_;
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

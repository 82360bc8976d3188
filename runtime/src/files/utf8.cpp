#include "files/utf8.h"
#include <cstdint>
#include <cstring>

namespace scalide {

namespace {

/// Returns the size in bytes of the first character, or 0 if it is invalid. The text has at least one byte.
size_t size_of_character(const char *text, size_t bytes) {
    const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
    if (byte(0) < 0x80) return 1;
    if (byte(0) < 0xc2 || byte(0) > 0xf4) return 0;
    const size_t size = byte(0) < 0xe0 ? 2 : byte(0) < 0xf0 ? 3 : 4;
    if (size > bytes) return 0;
    uint32_t code = byte(0) & (0x7fu >> size);
    for (size_t i = 1; i < size; ++i) {
        if ((byte(i) & 0xc0) != 0x80) return 0;
        code = code << 6 | (byte(i) & 0x3fu);
    }
    constexpr uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    return code < smallest[size] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000) ? 0 : size;
}

} // namespace

bool is_utf8(const char *text, size_t size) {
    for (size_t at = 0, step; at < size; at += step) {
        step = size_of_character(text + at, size - at);
        if (step == 0) return false;
    }
    return true;
}

bool is_utf8(const char *text) { return is_utf8(text, std::strlen(text)); }

} // namespace scalide

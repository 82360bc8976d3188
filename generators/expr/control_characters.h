#pragma once
#include <string>

namespace scalide {

/// Names and files may have them, and a terminal would obey.
inline bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

/// `\x1b`: how messages and programs show such a character.
inline std::string hex_escape(char c) {
    constexpr const char *digits = "0123456789abcdef";
    const auto code = static_cast<unsigned char>(c);
    return {'\\', 'x', digits[code >> 4], digits[code & 15]};
}

} // namespace scalide

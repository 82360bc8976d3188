#pragma once
#include <string>

namespace scalide {

/// Returns true for a control character. Names and files may contain them, and a terminal would execute them.
inline bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

/// Returns the escape for a control character in messages and programs: `\x1b`.
inline std::string hex_escape(char c) {
    constexpr const char *digits = "0123456789abcdef";
    const auto code = static_cast<unsigned char>(c);
    return {'\\', 'x', digits[code >> 4], digits[code & 15]};
}

} // namespace scalide

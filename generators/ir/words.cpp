#include "ir/words.h"
#include "expr/control_characters.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace scalide {

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_number_word(std::string_view text) { return text == "inf" || text == "nan"; }
bool is_bare_character(char c) { return is_letter(c) || is_digit(c) || c == '.' || c == '/'; }

bool is_bare_word(std::string_view word) {
    return !word.empty() && is_letter(word[0]) && std::ranges::all_of(word, is_bare_character) && !is_number_word(word);
}

/// Returns the number of bytes of the first UTF-8 character. Returns 0 for an invalid character and for a zero byte. Overlong forms and
/// surrogates are invalid.
size_t size_of_character(std::string_view bytes) {
    const auto byte = [&](size_t i) { return static_cast<unsigned char>(bytes[i]); };
    if (byte(0) < 0x80) return byte(0) == 0 ? 0 : 1;
    const size_t size = byte(0) < 0xe0 ? 2 : byte(0) < 0xf0 ? 3 : 4;
    if (byte(0) < 0xc2 || byte(0) > 0xf4 || bytes.size() < size) return 0;
    uint32_t code = byte(0) & (0x7fu >> size);
    for (size_t i = 1; i < size; i++) {
        if ((byte(i) & 0xc0) != 0x80) return 0;
        code = code << 6 | (byte(i) & 0x3f);
    }
    constexpr uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    const bool is_surrogate = code >= 0xd800 && code < 0xe000;
    return code < smallest[size] || code > 0x10ffff || is_surrogate ? 0 : size;
}

} // namespace

bool is_name_character(char c) { return is_letter(c) || is_digit(c) || c == '.' || c == '$'; }

bool is_plain_name(std::string_view text) {
    if (text.empty() || !(is_letter(text[0]) || text[0] == '$')) return false;
    return std::ranges::all_of(text, is_name_character) && !is_number_word(text);
}

bool is_text(std::string_view bytes) {
    for (size_t size = 0; !bytes.empty(); bytes.remove_prefix(size)) {
        size = size_of_character(bytes);
        if (size == 0) return false;
    }
    return true;
}

bool is_name(std::string_view bytes) { return !bytes.empty() && is_text(bytes); }

std::string name_to_string(std::string_view name) { return is_plain_name(name) ? std::string(name) : quote(name); }

std::string subject_of(std::string_view owner, std::string_view name) { return name_to_string(owner) + "." + name_to_string(name); }

std::string word_to_string(std::string_view word, const std::set<std::string> &symbols) {
    return is_bare_word(word) && !symbols.contains(std::string(word)) ? std::string(word) : quote(word);
}

std::string quote(std::string_view text) {
    std::string quoted = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') quoted += '\\';
        quoted += is_control(c) ? hex_escape(c) : std::string(1, c);
    }
    return quoted + "\"";
}

std::optional<std::string> unquote(std::string_view quoted) {
    std::string text;
    const std::string_view inside = quoted.substr(1, quoted.size() - 2);
    for (size_t i = 0; i < inside.size(); i++) {
        if (inside[i] != '\\') {
            text += inside[i];
            continue;
        }
        const char escape = inside[++i];
        unsigned code = 0;
        if (escape == '"' || escape == '\\') {
            text += escape;
        } else if (escape == 'x' && inside.size() - i > 2 &&
                   std::from_chars(&inside[i + 1], &inside[i + 1] + 2, code, 16).ptr == &inside[i + 1] + 2) {
            text += static_cast<char>(code);
            i += 2;
        } else {
            return std::nullopt;
        }
    }
    return text;
}

std::string number_to_string(double number) {
    if (std::isnan(number)) return std::signbit(number) ? "-nan" : "nan";
    if (std::isinf(number)) return number < 0 ? "-inf" : "inf";
    std::array<char, 32> buffer;
    const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), number).ptr;
    const std::string text(buffer.data(), end);
    return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

} // namespace scalide

#include "emit/c_text.h"
#include <algorithm>
#include <cctype>
#include <fmt/format.h>
#include <string_view>

namespace scalide {

namespace {

/// Names that no member of a struct may have in a header for C99 and C++20, including the macros of <stdbool.h> and <stddef.h>.
constexpr std::string_view words =
    " NULL _Bool _Complex _Imaginary alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t"
    " char8_t class co_await co_return co_yield compl concept const const_cast consteval constexpr constinit continue decltype"
    " default delete do double dynamic_cast else enum explicit export extern false float for friend goto if inline int long mutable"
    " namespace new noexcept not not_eq nullptr offsetof operator or or_eq private protected public register reinterpret_cast"
    " requires restrict return short signed sizeof static static_assert static_cast struct switch template this thread_local throw"
    " true try typedef typeid typename typeof union unsigned using virtual void volatile wchar_t while xor xor_eq ";

bool is_word(const std::string &identifier) { return words.find(" " + identifier + " ") != std::string_view::npos; }

} // namespace

std::string to_identifier(const std::string &name) {
    std::string identifier;
    for (const unsigned char c : name) identifier += c < 0x80 && std::isalnum(c) ? static_cast<char>(c) : '_';
    return identifier.empty() || std::isdigit(static_cast<unsigned char>(identifier[0])) ? "_" + identifier : identifier;
}

std::string to_c_string(const std::string &text) {
    std::string literal = "\"";
    for (const unsigned char c : text) {
        if (c == '\n') {
            literal += "\\n\"\n    \"";
        } else if (c < 0x20 || c > 0x7e) {
            literal += fmt::format("\\{:03o}", c);
        } else {
            if (c == '"' || c == '\\' || c == '?') literal += '\\'; // in C99, ??/ is a backslash
            literal += static_cast<char>(c);
        }
    }
    return literal + "\"";
}

std::string to_comment(std::string text) {
    for (const char *const mark : {"*/", "/*"})
        for (size_t at = 0; (at = text.find(mark, at)) != std::string::npos;) text.insert(at + 1, " ");
    for (size_t at = 0; (at = text.find('\n', at)) != std::string::npos; at += 4) text.replace(at, 1, "\n * ");
    return text;
}

std::string upper(std::string identifier) {
    std::ranges::transform(identifier, identifier.begin(), [](unsigned char c) { return std::toupper(c); });
    return identifier;
}

std::string Identifiers::member(const std::string &prefix, const std::string &name) {
    const std::string plain = to_identifier(name);
    std::string identifier = plain;
    for (int number = 1; is_word(identifier) || !taken_.insert(upper(prefix + identifier)).second; number++)
        identifier = fmt::format("{}_{}", plain, number);
    return identifier;
}

} // namespace scalide

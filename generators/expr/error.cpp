#include "expr/error.h"

namespace scalide {

namespace {

/// `\x1b` for control characters, which names and files may have and a terminal would obey. What a program printed keeps its lines.
std::string harmless(const std::string &text) {
    constexpr const char *digits = "0123456789abcdef";
    std::string shown;
    for (const unsigned char c : text) {
        if ((c < 0x20 && c != '\n' && c != '\t') || c == 0x7f)
            shown += {'\\', 'x', digits[c >> 4], digits[c & 15]};
        else
            shown += static_cast<char>(c);
    }
    return shown;
}

std::string to_string(const Message &message) {
    std::string text;
    for (const std::string &part : {to_string(message.location), message.subject, message.requirement}) {
        if (!text.empty() && !part.empty()) text += ": ";
        text += part;
    }
    if (!message.got.empty()) text += ", got " + message.got;
    if (!message.way_out.empty()) text += ". " + message.way_out;
    return harmless(text);
}

} // namespace

std::string to_string(const Location &location) {
    std::string text = location.file;
    for (int number : {location.line, location.column}) {
        if (number == 0) break;
        text += (text.empty() ? "" : ":") + std::to_string(number);
    }
    return text;
}

UserError::UserError(Message message) : std::runtime_error(to_string(message)), message_(std::move(message)) {}

void internal_check(bool condition, const std::string &words) {
    if (!condition) throw InternalError("internal error: " + words);
}

} // namespace scalide

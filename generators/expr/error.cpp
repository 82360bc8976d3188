#include "expr/error.h"
#include "expr/control_characters.h"

namespace scalide {

namespace {

/// Without control characters. What a program printed keeps its lines.
std::string harmless(const std::string &text) {
    std::string shown;
    for (const char c : text) shown += is_control(c) && c != '\n' && c != '\t' ? hex_escape(c) : std::string(1, c);
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

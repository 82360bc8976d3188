#include "expr/error.h"

namespace scalide {

namespace {

std::string to_string(const Message &message) {
    std::string text;
    for (const std::string &part : {to_string(message.location), message.subject, message.requirement}) {
        if (!text.empty() && !part.empty()) text += ": ";
        text += part;
    }
    if (!message.got.empty()) text += ", got " + message.got;
    if (!message.way_out.empty()) text += ". " + message.way_out;
    return text;
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

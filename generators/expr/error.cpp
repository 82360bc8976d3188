#include "expr/error.h"
#include "expr/control_characters.h"

namespace scalide {

namespace {

constexpr size_t most_of_name = 300, most_of_words = 8000; ///< bytes of a part

/// Without control characters, but for those in `kept`.
std::string harmless(const std::string &text, std::string_view kept = "") {
    std::string shown;
    for (const char c : text) shown += is_control(c) && kept.find(c) == std::string_view::npos ? hex_escape(c) : std::string(1, c);
    return shown;
}

/// The beginning of what is longer, up to the end of a character.
std::string cut(const std::string &text, size_t most) {
    if (text.size() <= most) return text;
    size_t end = most;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) end--;
    return text.substr(0, end) + "... (" + std::to_string(text.size()) + " bytes)";
}

std::string words(const std::string &text) { return harmless(cut(text, most_of_words)); }
std::string name(const std::string &text) { return harmless(cut(text, most_of_name)); }

std::string to_string(const Message &message) {
    std::string text;
    for (const std::string &part : {words(to_string(message.location)), name(message.subject), words(message.requirement)}) {
        if (!text.empty() && !part.empty()) text += ": ";
        text += part;
    }
    if (!message.got.empty()) text += ", got " + words(message.got);
    if (!message.printed.empty()) text += ": " + harmless(message.printed, "\n\t");
    if (!message.way_out.empty()) text += ". " + words(message.way_out);
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

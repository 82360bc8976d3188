#include "expr/error.h"
#include "expr/control_characters.h"
#include <string_view>

namespace scalide {

namespace {

constexpr size_t most_of_name = 300, most_of_words = 8000; ///< limits of the parts of a message, in bytes

/// Replaces control characters by escapes, except for those in `kept`.
std::string harmless(const std::string &text, std::string_view kept = "") {
    std::string shown;
    for (const char c : text) shown += is_control(c) && kept.find(c) == std::string_view::npos ? hex_escape(c) : std::string(1, c);
    return shown;
}

/// Cuts a long text after a whole character.
std::string cut(const std::string &text, size_t most) {
    if (text.size() <= most) return text;
    size_t end = most;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) end--;
    return text.substr(0, end) + "... (" + std::to_string(text.size()) + " bytes)";
}

std::string words(const std::string &text) { return harmless(cut(text, most_of_words)); }
std::string name(const std::string &text) { return harmless(cut(text, most_of_name)); }

/// The text between the parts of a message.
struct Joints {
    std::string_view before_subject, after_subject, before_got, after_got;
};

// In the order of MessageKind.
constexpr Joints joints[] = {{"", ": ", ", got ", ""}, {"unknown ", "", " '", "'"}, {"cannot ", "", ": ", ""}, {"'", "' ", " '", "'"}};

std::string to_string(const Message &message) {
    const Joints &joint = joints[static_cast<size_t>(message.kind)];
    std::string text = words(to_string(message.location));
    if (!text.empty()) text += ": ";
    if (!message.subject.empty()) text.append(joint.before_subject).append(name(message.subject)).append(joint.after_subject);
    text += words(message.requirement);
    if (!message.got.empty()) text.append(joint.before_got).append(words(message.got)).append(joint.after_got);
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

Message unknown_name(const Location &location, const std::string &noun, const std::string &name, const std::string &way_out) {
    return {location, noun, "", name, way_out, "", MessageKind::unknown};
}

Message failed_action(const std::string &action, const std::string &reason, const std::string &way_out, const std::string &printed) {
    return {{}, action, "", reason, way_out, printed, MessageKind::failed};
}

Message relation_of(const Location &location, const std::string &name, const std::string &relation, const std::string &other,
                    const std::string &way_out) {
    return {location, name, relation, other, way_out, "", MessageKind::relation};
}

Message statement(const Location &location, const std::string &sentence, const std::string &way_out) {
    return {location, "", sentence, "", way_out, "", MessageKind::value};
}

UserError::UserError(Message message) : std::runtime_error(to_string(message)), message_(std::move(message)) {}

void internal_check(bool condition, const std::string &words) {
    if (!condition) throw InternalError("internal error: " + words);
}

} // namespace scalide

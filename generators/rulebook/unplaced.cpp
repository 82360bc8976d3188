#include "rulebook/unplaced.h"

namespace scalide {

void fail_unplaced(const std::string &requirement, const std::string &got, const std::string &way_out) {
    throw UserError({{}, "", requirement, got, way_out});
}

void rethrow_placed(const UserError &error, const Location &where, const std::string &subject) {
    Message message = error.message();
    if (!message.subject.empty() || !to_string(message.location).empty()) throw error;
    message.location = where;
    message.subject = subject;
    throw UserError(message);
}

void rethrow_inside(const UserError &error, const Location &where, const std::string &op, const std::string &field) {
    Message message = error.message();
    const std::string inner = message.subject;
    const bool is_placed = !to_string(message.location).empty();
    if (!is_placed && !inner.empty()) throw error; // about the program, not about an operator
    if (!is_placed) message.location = where;
    if (inner.empty() && message.kind == MessageKind::value)
        message.subject = field.starts_with("grad.") ? op + "." + field : op;
    else if (message.kind == MessageKind::value && inner != op && !inner.starts_with(op + ".") && !inner.starts_with(op + " "))
        message.subject = op + " (by its operator " + inner + ")";
    throw UserError(message);
}

} // namespace scalide

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

} // namespace scalide

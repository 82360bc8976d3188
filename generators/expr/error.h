#pragma once
#include <stdexcept>
#include <string>

namespace scalide {

/// A place in a text that a user wrote. Line and column count from 1; 0 = unknown.
struct Location {
    std::string file;
    int line = 0, column = 0;
};

/// `<file>:<line>[:<column>]`, or what of it is known.
std::string to_string(const Location &location);

/// The parts of a message: `<file>:<line>: <subject>: <requirement>, got <got>. <way_out>`. Empty parts are left out. Parts may have names
/// of strangers: control characters are shown as `\x0a`, so that none begins a line, and what is very long is cut.
struct Message {
    Location location = {};
    std::string subject = {};     ///< `<op>.<field>[.<id>]`, `program.value`, an option ...
    std::string requirement = {}; ///< "must be one of f32, f16, bf16"
    std::string got = {};
    std::string way_out = {}; ///< a sentence that says what to do; no final stop
    std::string printed = {}; ///< what another program said of it, behind `got`: alone keeps its lines
};

/// A mistake of the user: a program, rule, policy, argument or file that does not do. The tool prints `what()` and exits with 1.
class UserError : public std::runtime_error {
public:
    explicit UserError(Message message);
    const Message &message() const { return message_; }

private:
    Message message_;
};

/// A mistake of ours: an invariant between passes that does not hold. The tool prints `what()` and exits with 70.
class InternalError : public std::logic_error {
public:
    using std::logic_error::logic_error;
};

/// Throws InternalError("internal error: " + words) unless `condition` holds.
void internal_check(bool condition, const std::string &words);

} // namespace scalide

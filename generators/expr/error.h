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

/// The shape of a message. Each kind is a row of a table in error.cpp.
enum class MessageKind {
    value,    ///< `<subject>: <requirement>, got <got>`: a value does not meet a requirement
    unknown,  ///< `unknown <subject> '<got>'`: nothing has this name
    failed,   ///< `cannot <subject>: <got>`: an operation on a file, a process or memory failed
    relation, ///< `'<subject>' <requirement> '<got>'`: two keys or options need or exclude each other
};

/// The parts of a message: `<file>:<line>: `, then the parts in the shape of the kind, then `. <way_out>`. Empty parts are left out. Parts
/// may contain names from files: control characters are printed as `\x0a`, so that no name can begin a line. Very long parts are cut.
struct Message {
    Location location = {};
    std::string subject = {};     ///< `<op>.<field>[.<id>]`, `program.value`, an option ...
    std::string requirement = {}; ///< "must be one of f32, f16, bf16"
    std::string got = {};
    std::string way_out = {}; ///< a sentence that says what to do; no final stop
    std::string printed = {}; ///< the output of another program, printed after `got` with its line breaks
    MessageKind kind = MessageKind::value;
};

/// `unknown <noun> '<name>'. <way_out>`
Message unknown_name(const Location &location, const std::string &noun, const std::string &name, const std::string &way_out = "");
/// `cannot <action>: <reason>: <printed>. <way_out>`
Message failed_action(const std::string &action, const std::string &reason, const std::string &way_out = "",
                      const std::string &printed = "");
/// `'<name>' <relation> '<other>'. <way_out>`
Message relation_of(const Location &location, const std::string &name, const std::string &relation, const std::string &other,
                    const std::string &way_out = "");
/// A whole sentence, for a fact that has no single value or name.
Message statement(const Location &location, const std::string &sentence, const std::string &way_out = "");

/// A mistake of the user in a program, rule, policy, argument or file. The tool prints `what()` and exits with 1.
class UserError : public std::runtime_error {
public:
    explicit UserError(Message message);
    const Message &message() const { return message_; }

private:
    Message message_;
};

/// A bug in Scalide: an invariant between passes does not hold. The tool prints `what()` and exits with 70.
class InternalError : public std::logic_error {
public:
    using std::logic_error::logic_error;
};

/// Throws InternalError("internal error: " + words) unless `condition` holds.
void internal_check(bool condition, const std::string &words);

} // namespace scalide

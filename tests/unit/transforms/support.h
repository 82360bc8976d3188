#pragma once
#include "ir/program.h"
#include "support/programs/rules.h"

namespace scalide {

/// Returns the typed program of a text that omits the words `program p`: arguments, results and body.
Program typed(const std::string &text);

/// Returns the lines between the braces of a program's text, without indentation.
std::string body(const Program &program);

/// Returns the body of the program of a text, simplified.
std::string simplified(const std::string &text);

/// Returns the message of the UserError that `act` throws, or "no error" if it throws none.
template<typename Act>
std::string error_of(const Act &act) {
    try {
        act();
    } catch (const UserError &error) {
        return error.what();
    }
    return "no error";
}

} // namespace scalide

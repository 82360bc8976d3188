#pragma once
#include "ir/program.h"
#include "support/programs/rules.h"

namespace scalide {

/// A program with its types, from its text without the words `program p`: arguments, results and body.
Program typed(const std::string &text);

/// The lines between the braces of a program's text, without indentation.
std::string body(const Program &program);

/// What the UserError says that `act` throws; "no error" when it throws none.
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

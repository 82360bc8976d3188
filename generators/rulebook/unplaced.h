#pragma once
#include "expr/error.h"

namespace scalide {

/// Throws a UserError without location and subject: the code that evaluates an expression does not know which rule contains it.
[[noreturn]] void fail_unplaced(const std::string &requirement, const std::string &got = "", const std::string &way_out = "");

/// Rethrows `error`, at `where` and about `subject` when it is unplaced.
[[noreturn]] void rethrow_placed(const UserError &error, const Location &where, const std::string &subject);

} // namespace scalide

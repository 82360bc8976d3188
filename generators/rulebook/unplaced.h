#pragma once
#include "expr/error.h"

namespace scalide {

/// Throws a UserError that has no place and subject yet: what evaluates an expression does not know whose it is.
[[noreturn]] void fail_unplaced(const std::string &requirement, const std::string &got = "");

/// Rethrows `error`, at `where` and about `subject` when it is unplaced.
[[noreturn]] void rethrow_placed(const UserError &error, const Location &where, const std::string &subject);

} // namespace scalide

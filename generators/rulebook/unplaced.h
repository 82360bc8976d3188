#pragma once
#include "expr/error.h"

namespace scalide {

/// Throws a UserError without location and subject. Code that evaluates an expression does not know where the expression comes from.
[[noreturn]] void fail_unplaced(const std::string &requirement, const std::string &got = "", const std::string &way_out = "");

/// Rethrows `error`. Adds `where` and `subject` if it has no location.
[[noreturn]] void rethrow_placed(const UserError &error, const Location &where, const std::string &subject);

/// Rethrows an error in an operator that the rule of `op` applies, in its field `field`: the message also names `op`. Adds `where` if the
/// error has no location.
[[noreturn]] void rethrow_inside(const UserError &error, const Location &where, const std::string &op, const std::string &field);

} // namespace scalide

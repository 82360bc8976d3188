#pragma once
#include "ir/program.h"

namespace scalide {

/// The most elements of an array in the runtime (SCALIDE_MAX_ELEMENTS).
inline constexpr int64_t most_elements = 2146435072;

/// Checks the invariants of every program, independent of the meaning of its operators:
/// - ids are in range, and each value is produced once and before its uses;
/// - names are unique, symbols are declared, and no type is unknown;
/// - f64 values are scalars, and an inout result has the type of its argument;
/// - sub-programs exist and are called with exactly their types;
/// - in a program of a user, the shapes of arguments determine each symbol.
/// `after` names the pass that produced the program. Throws InternalError. If `after` is empty, the program comes from a user, and the
/// function throws UserError with the location of the node.
void verify(const Program &program, const std::string &after);

} // namespace scalide

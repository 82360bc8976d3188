#pragma once
#include "ir/program.h"
#include <optional>

namespace scalide {

/// A program, divided by when its nodes run.
struct SplitProgram {
    Program main;                   ///< runs each time; its arguments with Supply::prepared are the results of `prepare`, in order
    std::optional<Program> prepare; ///< runs once at bind; its arguments are the constants. Nothing: no node reads a constant
};

/// Moves the nodes that depend only on constants and literals to the program `prepare`. `program` consists of base operators. The constants
/// remain arguments of `main`, but no node reads them: a run needs only the prepared arrays. A conversion or broadcast that makes an array
/// larger stays in `main`, because a run then reads fewer bytes.
SplitProgram split_constants(const Program &program);

} // namespace scalide

#pragma once
#include "ir/program.h"

namespace scalide {

/// Returns the program that a pass made in the form that dumps print: its text parses back to a program that computes the same.
Program as_dumped(const std::string &pass, const Program &after);

} // namespace scalide

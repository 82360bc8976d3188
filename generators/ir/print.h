#pragma once
#include "ir/attribute.h"
#include "ir/program.h"
#include <set>
#include <vector>

namespace scalide {

/// As to_string() in attribute.h, for a program with these symbols: a word that is also a symbol is quoted.
std::string to_string(const Attribute &attribute, const std::set<std::string> &symbols);
std::string to_string(const Attributes &attributes, const std::set<std::string> &symbols);

/// A line of the text of a program.
struct PrintedLine {
    std::string text;
    Location location = {}; ///< of the node that begins in this line; empty for other lines
};

/// Returns the lines of to_string(program).
std::vector<PrintedLine> to_lines(const Program &program);

} // namespace scalide

#pragma once
#include "base/text.h"

namespace scalide {

/// Prints the characters of a JSON string, without its quotes.
Text &print_escaped(Text &text, const char *value);

} // namespace scalide

#pragma once
#include "ir/program.h"

namespace scalide {

/// Returns a line for each message between ranks of a fused program: the kernel before it, by its number in the order of calls, its group,
/// its arrays, and the place in the source.
std::string list_messages(const Program &fused);

} // namespace scalide

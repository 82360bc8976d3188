#pragma once
#include "ir/program.h"

namespace scalide {

/// Returns the nodes that update an array one after the other, the first one first. Each node is a scatter or a dynamic_update_slice of the
/// array that the node before it makes. The first one reads `argument`, the last one makes `value`, and nothing else reads the arrays
/// between them. The result is empty if `value` is made in another way. `makers` are the producers of the program.
std::vector<int> updates_between(const Program &program, const std::vector<int> &makers, ValueId argument, ValueId value);

} // namespace scalide

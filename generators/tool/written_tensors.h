#pragma once
#include "transforms/analysis/origins.h"

namespace scalide {

/// The tensors that a kernel computes, in words for the columns of a table.
struct WrittenTensors {
    std::string tensors, direction, scope, source; ///< different words are joined by commas; "-": none
};
WrittenTensors in_columns(const std::vector<Origin> &written);

/// Returns `h, mlp/1/add (mlp/0, forward, net.scl:3)`: tensors of one place stand together. Without a gradient in the program, directions
/// are left out.
std::string in_words(const std::vector<Origin> &written, bool has_gradient);

} // namespace scalide

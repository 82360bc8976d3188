#pragma once
#include "lower/kinds.h"

namespace scalide {

/// Stores single elements that would stand in very many places of a kernel's expressions, each in a stage `shared`. Where there is no
/// loop, Halide's bounds inference writes an expression out as often as it stands in others, which doubles at every step of a long chain.
void share_single_elements(Lowering &lowering);

} // namespace scalide

#pragma once
#include "ir/program.h"

namespace scalide {

/// Rewrites a row kernel to one axis of rows and one axis of columns. merge_axes() leaves several axes, or one of extent 1, if an argument
/// is broadcast or moved along it. Values of shape rows or rows x columns then get merged axes too, and moved values are reshaped. Memory
/// does not change.
Program merge_rows(const Program &program);

} // namespace scalide

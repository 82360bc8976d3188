#pragma once
#include "ir/program.h"

namespace scalide {

/// A row kernel over one row axis and one axis of columns: where several remain (an argument is broadcast or moved along one of them),
/// values of shape rows or rows x columns get their axes merged all the same, and what was moved is reshaped. Memory does not change.
Program merge_rows(const Program &program);

} // namespace scalide

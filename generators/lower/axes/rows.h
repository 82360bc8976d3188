#pragma once
#include "ir/program.h"

namespace scalide {

/// A row kernel over one row axis and one axis of columns: where several remain, or one of extent 1 (an argument is broadcast or moved
/// along it), values of shape rows or rows x columns get their axes merged all the same, and what was moved is reshaped. Memory does not
/// change.
Program merge_rows(const Program &program);

} // namespace scalide

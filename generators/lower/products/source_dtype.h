#pragma once
#include "ir/program.h"

namespace scalide {

/// Returns the dtype that the elements of a value had before their conversion, if the value is only moved after it. Otherwise the dtype of
/// the value.
Dtype source_dtype(const Program &program, ValueId value);

} // namespace scalide

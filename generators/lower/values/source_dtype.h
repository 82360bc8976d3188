#pragma once
#include "ir/program.h"

namespace scalide {

/// Returns the value that a value is only a movement of; itself if it is not moved.
ValueId source_of_moves(const Program &program, ValueId value);

/// Returns the dtype that the elements of a value had before their conversion, if the value is only moved after it. Otherwise the dtype of
/// the value.
Dtype source_dtype(const Program &program, ValueId value);

/// Returns a number of bits that holds the significand of every float element of a value: 4 for f8_e4m3fn, and for its product by a power
/// of two (f8_e8m0fnu); 24 for f32 of unknown origin.
int significant_bits(const Program &program, ValueId value);

} // namespace scalide

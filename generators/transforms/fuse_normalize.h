#pragma once
#include "ir/program.h"

namespace scalide {

/// The program with every reduction over trailing, leading or all axes: others read a transpose that moves their axes last.
Program move_reduced_axes_last(const Program &program);

} // namespace scalide

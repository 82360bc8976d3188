#pragma once
#include "ir/program.h"

namespace scalide {

/// The program with every reduction over trailing, leading or all axes: others read a transpose that moves their axes last. None folds an
/// axis of extent 1: that is a reshape, and a sum an addition of 0 (kernels of reductions count rows and columns, and such an axis is
/// neither).
Program move_reduced_axes_last(const Program &program);

} // namespace scalide

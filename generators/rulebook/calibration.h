#pragma once
#include "expr/error.h"
#include <filesystem>
#include <map>

namespace scalide {

/// The largest magnitude (amax) of each tensor that `scalide calibrate` found on sample data. A policy with `scale: {by: calibration}`
/// computes fixed scales from it.
///   program: classify
///   amax:
///     "x": 3.5
struct Calibration {
    std::string program;                ///< name of the program for which it was made
    std::map<std::string, double> amax; ///< by the name of the tensor
    Location location;
};

/// Reads a calibration file. Throws UserError with file and line.
Calibration load_calibration(const std::filesystem::path &file);

} // namespace scalide

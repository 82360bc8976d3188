#pragma once
#include "expr/error.h"
#include "scalide/statistics.h"
#include <string>
#include <vector>

namespace scalide {

/// The statistics of a tensor in one run, as Library.statistics of the Python package returns them.
struct TensorStatistic {
    std::string tensor, use, op, format, scope, direction, policy;
    Location source;
    int first_exponent = 0, octaves = 1;
    scalide_statistic numbers;
};

/// Returns the newest statistics of each tensor that a run has collected, in the order of the program.
std::vector<TensorStatistic> read_statistics(scalide_statistics *statistics);

std::string to_text(const std::vector<TensorStatistic> &rows);
std::string to_json(const std::vector<TensorStatistic> &rows);

} // namespace scalide

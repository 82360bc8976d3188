#pragma once
#include "transforms/numerics/statistics_sites.h"

namespace scalide {

/// The layout of a histogram of magnitudes: floor(log2|x|), in `statistic_bins` bins of `octaves` powers of two. The first bin has all
/// numbers below 2^first_exponent except zeros, and the last bin has all numbers above the bins before it.
struct MagnitudeBins {
    int first_exponent = 0, octaves = 1;
};
inline constexpr int statistic_bins = 32;

/// Returns the bins for the numbers of a format.
MagnitudeBins magnitude_bins(Dtype format);

/// The numbers that a kernel writes for a tensor. The numbers of scalide_statistic_part in plan.h are the same.
enum class StatisticPart : uint8_t {
    amax,             ///< f32: the largest finite magnitude of the tensor
    scale,            ///< f32: the scale of its data
    large_squares,    ///< f32: sum of squares of the magnitudes from 2^20 on, times 2^-150
    small_squares,    ///< f32: sum of squares of the smaller magnitudes, times 2^40; without large_squares: of all data, which has a scale
    zeros,            ///< i32: numbers that became 0
    saturated,        ///< i32: numbers beyond the format
    subnormal,        ///< i32: stored numbers below the smallest normal number
    non_finite,       ///< i32: infinities and NaNs of the tensor
    first_non_finite, ///< i32: the row-major index of the first one; 2^31 - 1: none
    histogram         ///< i32[statistic_bins]
};
inline constexpr int statistic_parts = 10;

/// What a program of a statistics build collects of a tensor.
struct CollectedStatistic {
    StatisticsSite site;
    Location row; ///< the row of the policy; none: an option of the build
    int64_t every = 1;
    Extents shape;
    MagnitudeBins bins;
    std::array<std::string, statistic_parts> results = {}; ///< by part: name of the result of the program; empty: it is not collected
};

/// Adds results to a program of base operators: the statistics of all tensors that rows match. Nothing else of the program changes, so all
/// other results keep their bits. Throws UserError for a row that matches nothing.
std::vector<CollectedStatistic> collect_statistics(Program &program, const Rulebook &rulebook, const std::vector<StatisticsRow> &rows,
                                                   const std::map<std::string, NamedTensor> &source, bool is_gpu);

} // namespace scalide

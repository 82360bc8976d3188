#pragma once
#include "transforms/numerics/statistics_sites.h"

namespace scalide {

/// The layout of a histogram of magnitudes: floor(log2|x|), in `statistic_bins` bins of `octaves` powers of two. The first bin has all
/// numbers below 2^first_exponent except zeros, and the last bin has all numbers above the bins before it.
struct MagnitudeBins {
    int first_exponent = 0, octaves = 1;
};
inline constexpr int statistic_bins = 32;
/// Zero, then each bin and what up to three limits inside of bins add, then infinities and NaNs. See Categories.
inline constexpr int statistic_categories = 1 + statistic_bins + 3 + 2;

/// Returns the bins for the numbers of a format.
MagnitudeBins magnitude_bins(Dtype format);

/// Each element has one category: 0 for a zero; 1 + its bin + the number of limits that it reaches; or one of the last two, for infinities
/// and NaNs of the tensor. Rounding is monotonic, so a limit is a magnitude. One table then counts all of them: from the number of each
/// category follow the histogram, and the elements that become 0, subnormal or saturated.
struct Categories {
    /// By limit: the category of the smallest magnitude that does not become 0, that becomes a normal number, that is beyond the format.
    /// -1: nothing is rounded, rounding is random, or the kind is not collected.
    std::array<int, 3> first = {-1, -1, -1};
    bool makes_infinities_finite = false; ///< infinities are saturated, too
};

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
    categories        ///< i32[statistic_categories]; then the counts before are outputs only if they depend on random bits
};
inline constexpr int statistic_parts = 10;

/// What a program of a statistics build collects of a tensor.
struct CollectedStatistic {
    StatisticsSite site;
    Location row; ///< the row of the policy; none: an option of the build
    int64_t every = 1;
    Extents shape;
    MagnitudeBins bins;
    Categories categories = {};
    uint32_t collects = 0;                                 ///< bits of StatisticKind
    std::array<std::string, statistic_parts> results = {}; ///< by part: name of the result of the program; empty: it is not collected
};

/// The tensors of the user's program, by name.
struct NamedTensors {
    std::map<std::string, NamedTensor> outside, inside; ///< of loops and branches
};

/// Adds results to a program of base operators: the statistics of all tensors that rows match. Nothing else of the program changes, so all
/// other results keep their bits. Throws UserError for a row that matches nothing.
std::vector<CollectedStatistic> collect_statistics(Program &program, const Rulebook &rulebook, const std::vector<StatisticsRow> &rows,
                                                   const NamedTensors &source, bool is_gpu);

} // namespace scalide

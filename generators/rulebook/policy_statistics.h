#pragma once
#include "expr/error.h"
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace scalide {

class YamlValue;

/// What a statistics build counts of a tensor. `non_finite` has the number of elements and the index of the first one.
enum class StatisticKind : uint8_t { amax, rms, zeros, saturated, subnormal, non_finite, histogram };
inline constexpr std::array<std::string_view, 7> statistic_words = {"amax",      "rms",        "zeros",    "saturated",
                                                                    "subnormal", "non_finite", "histogram"};

/// A row of `statistics` of a policy: what is collected of the tensors that it matches, and in which runs. The first row that matches a
/// tensor decides. A condition that is left out matches everything.
///   - {collect: [amax, zeros, saturated], every: 10}
///   - {collect: [rms, histogram], op: [exp, log], scope: "**/attention/**", every: 100}
struct StatisticsRow {
    std::vector<StatisticKind> collect = {};
    std::string argument = {};         ///< glob over names of arguments; only arguments match
    std::string tensor = {};           ///< glob over names of tensors
    std::string scope = {};            ///< glob over scopes
    std::vector<std::string> ops = {}; ///< operators that compute the tensor, or that read its rounded form
    int64_t every = 10;                ///< runs 0, every, 2 * every ... collect
    bool optional = false;             ///< it may match no tensor
    bool inherited = false;            ///< it comes from a policy that this policy extends
    Location location = {};

    /// True if the row names tensors. Otherwise it matches the arrays of `is_stored` of transforms/numerics/collect_statistics.h.
    bool names_tensors() const { return !argument.empty() || !tensor.empty() || !ops.empty(); }
};

/// The row of a build with `--statistics`: everything of every stored or rounded tensor, in each tenth run.
StatisticsRow statistics_of_all(int64_t every = 10);

/// Reads a row. Throws UserError with file and line.
StatisticsRow read_statistics_row(const YamlValue &row);

} // namespace scalide

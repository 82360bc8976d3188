#pragma once
#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace scalide {

/// The statistics of a tensor in one step. A number that was not collected is `not_collected`. NaN counts as infinity here.
enum class RunStatistic : uint8_t { amax, scale, zeros, saturated, subnormal, non_finite, rms };
inline constexpr std::array statistic_names = {"amax", "scale", "zeros", "saturated", "subnormal", "non_finite", "rms"};
inline constexpr size_t statistic_count = statistic_names.size();
inline constexpr float not_collected = -1;

/// The statistics of a tensor in one step, by RunStatistic.
struct Sample {
    std::array<float, statistic_count> values;
    float operator[](RunStatistic which) const { return values[static_cast<size_t>(which)]; }
    bool has(RunStatistic which) const { return (*this)[which] >= 0; }
};

/// A tensor of a header line of the statistics.
struct LoggedTensor {
    std::string tensor, use, op, format, scope, direction, source, policy;
    std::vector<std::string> collect = {};
    double elements = 0, largest = 0, smallest_normal = 0, smallest = 0; ///< 0: unknown
    int64_t every = 0;
    int first_exponent = 0, octaves = 1; ///< of its histograms

    /// Returns true if `other` is the same tensor in the header of a resumed run.
    bool is_same(const LoggedTensor &other) const;
};

/// The counts of one step by floor(log2|x / scale|). `scale` is not_collected if the line has no scale for the tensor.
struct Histogram {
    int64_t step;
    float scale;
    std::vector<double> counts;
};

/// Some consecutive steps of a run: the largest value of each statistic of each tensor in them.
struct StepColumn {
    int64_t first, last;
    std::vector<Sample> samples; ///< by tensor; tensors of later headers may be missing at the end
};

struct NonFiniteEvent {
    int64_t step;
    std::string tensor, op, scope, source;
    std::vector<int64_t> index;
    int64_t first = -1; ///< the row-major index of the first element; -1: unknown
};

struct MetricPoint {
    int64_t step;
    double value;
};

/// Receives each line of statistics, before the lines become columns.
class SampleVisitor {
public:
    virtual ~SampleVisitor() = default;
    virtual void visit(int64_t step, const std::vector<int> &tensors, const std::vector<Sample> &samples) = 0;
};

/// The lines of a run, in memory that does not grow with the number of steps, except for metrics: 16 bytes for each number.
struct RunLog {
    std::string name; ///< file name or folder name
    std::string program, numerics, target;
    std::vector<LoggedTensor> tensors;
    std::vector<StepColumn> columns;                ///< by step
    std::vector<std::vector<Histogram>> histograms; ///< by tensor: some, at about equal distances
    std::vector<std::string> metric_names;          ///< in the order of the file
    std::map<std::string, std::vector<MetricPoint>> metrics;
    std::vector<NonFiniteEvent> events; ///< the first ones
    int64_t first_step = 0, last_step = -1;
    size_t statistic_lines = 0;
    bool is_torn = false; ///< the last line of a file is not complete

    bool is_empty() const { return last_step < first_step; }
};

/// Reads the lines of a run: files of JSON lines, or folders with `metrics.jsonl` and `statistics.jsonl`. A last line that is not complete
/// is ignored. Throws UserError with file and line for other lines that are not as docs/reference/run-files.md says.
RunLog read_run(const std::vector<std::filesystem::path> &paths, SampleVisitor *visitor = nullptr);

} // namespace scalide

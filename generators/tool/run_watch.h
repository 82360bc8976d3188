#pragma once
#include "tool/run_log.h"
#include <algorithm>

namespace scalide {

/// When a number of a run is unusual. All ratios are exponents of 2.
namespace run_limits {
constexpr double jump = 8;               ///< of amax or a scale against itself before: training changes a tensor by less in one step
constexpr double misfit = 5;             ///< of a scale: then numbers below the normal range are more than 2^5 times closer to amax
constexpr double sibling = 8;            ///< of amax against the median of tensors with the same role
constexpr int misfit_lines = 3;          ///< lines in a row with such a scale, because one line may be the outlier itself
constexpr double saturated = 0.01;       ///< share; a healthy scale per row saturates only the largest elements, by rounding
constexpr double saturated_more = 10;    ///< times the largest share before
constexpr double saturated_least = 8;    ///< elements
constexpr double zeros = 0.25;           ///< share of nonzero elements that become 0; a few percent are usual
constexpr double lost = 0.5;             ///< share of zeros that explains tensors that are 0 later in the program
constexpr double imprecise = 0.5;        ///< share of elements that become 0 or subnormal
constexpr int constant_lines = 10;       ///< a parameter that trains does not keep its rms in so many lines
constexpr double saturated_units = 0.95; ///< the rms of tanh
constexpr int vanished_lines = 3;        ///< lines in which a tensor is 0 as a whole; one batch may be empty
constexpr double falls = 8;              ///< of a loss scale: it is halved once for each overflow, and grows in between
constexpr double loss_jump = 3;          ///< times the median of the losses before
constexpr double loss_flat = 0.001;      ///< relative change from the first to the last quarter
constexpr double loss_noise = 3;         ///< standard errors by which a loss is larger at the end
constexpr size_t loss_window = 32, loss_least = 8;
constexpr double against = 0.01;     ///< relative difference from another run
constexpr double replaced = 0.25;    ///< of the rms of a state: the smallest change that counts
constexpr double replaced_more = 16; ///< times the largest change before
} // namespace run_limits

/// The last numbers of a series.
class Recent {
public:
    void add(double value) { values_[count_++ % values_.size()] = value; }
    bool is_known() const { return count_ >= 3; }
    double largest() const { return *std::max_element(values_.begin(), values_.begin() + size()); }

private:
    std::ptrdiff_t size() const { return static_cast<std::ptrdiff_t>(std::min(count_, values_.size())); }
    std::array<double, 8> values_ = {};
    size_t count_ = 0;
};

/// Consecutive lines in which a scale does not fit its tensor.
struct Misfit {
    int64_t first = -1, last = -1;
    int lines = 0;
    double exponent = 0;       ///< the largest scale / amax, compared with its usual value
    float scale = 0, amax = 0; ///< the first scale, and the last amax
    bool is_open = false, is_constant = true;
    int64_t outlier_step = -1; ///< a line before, in which amax was far above its values before; -1: none
    float outlier = 0;
};

/// A value that became larger by a power of two in one step.
struct Jump {
    int64_t step = -1, before = -1; ///< the lines after and before it
    double from = 0, to = 0;        ///< exponents
    int lines = 0, stays = 0;       ///< lines afterwards, and lines in which the value is still far above
};

/// What happened to one tensor, without the series itself.
struct TensorTrack {
    int lines = 0, zero_lines = 0, empty_lines = 0; ///< lines; lines that count zeros; lines in which amax is 0
    double zero_sum = 0, most_zeros = 0;
    int64_t last_step = -1, non_finite_step = -1;
    float first_amax = not_collected, last_amax = not_collected; ///< the first and the last one that is positive and finite
    double subnormal_sum = 0;
    float rms = not_collected, last_rms = not_collected; ///< of the first line, and of the last one
    float most_amax = not_collected;                     ///< the largest finite one
    int constant_lines = 0;                              ///< lines with exactly this rms
    Jump amax_jump, scale_jump;
    Jump rms_jump;               ///< a change far above all changes before, up or down
    double usual_rms_change = 0; ///< the largest change before it
    Misfit misfit;               ///< the longest
    int64_t saturated_step = -1;
    double saturated = 0, saturated_before = 0;
    float saturated_amax = 0, saturated_scale = 0;
    int64_t infinite_scale_step = -1;
    bool is_scaled = false;                           ///< a line has a scale
    int64_t vanished_step = -1, vanished_before = -1; ///< the first line in which all is 0, and the line before it
    int vanished_lines = 0, lines_since_vanished = 0; ///< lines that are 0, of the lines from it on
    float vanished_amax = 0;                          ///< before it

    void see(int64_t step, const Sample &sample);
    /// The mean of the numbers of elements that became 0 by rounding.
    double mean_zeros() const { return zero_lines == 0 ? 0 : zero_sum / zero_lines; }

private:
    void see_shares(int64_t step, const Sample &sample);
    void see_jump(int64_t step, double exponent, Recent &before, Jump &jump) const;
    void see_vanishing(int64_t step, float amax);
    void see_rms(int64_t step, float now);
    void see_ratio(int64_t step, float amax, float scale);
    void extend_misfit(int64_t step, float amax, float scale, double exponent);

    Recent amax_, scale_, ratio_, rms_; ///< exponents; of rms_, their changes
    Misfit open_;
    int64_t outlier_step_ = -1;
    float outlier_ = 0;
};

/// Watches the statistics of each step. Its memory does not grow with the number of steps.
class RunWatch : public SampleVisitor {
public:
    void visit(int64_t step, const std::vector<int> &tensors, const std::vector<Sample> &samples) override;
    /// By tensor; tensors without lines may be missing at the end.
    const std::vector<TensorTrack> &tracks() const { return tracks_; }
    /// The first step with an infinity or a NaN in a tensor; -1: none.
    int64_t non_finite_step() const { return non_finite_step_; }
    /// By tensor: the largest finite magnitude in this step, or in the line before it; not_collected for a tensor that is not finite.
    const std::vector<float> &amax_then() const { return amax_then_; }

private:
    int64_t non_finite_step_ = -1;
    std::vector<float> amax_then_;
    std::vector<TensorTrack> tracks_;
};

} // namespace scalide

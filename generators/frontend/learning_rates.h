#pragma once
#include "frontend/tensor.h"
#include <map>
#include <optional>

namespace scalide {

/// A value that may depend on the number of updates, such as a learning rate: `0.1`, a GeneratorParam, a scalar of the program, or a
/// function from the count to a scalar. The count is i32, and 0 in the first update. The value is f32.
class Schedule {
public:
    using Function = std::function<Tensor(const Tensor &count)>;

    Schedule(double value) : value_(value) {}
    Schedule(const Tensor &scalar) : value_(scalar) {}
    template<typename T>
    Schedule(const GeneratorParam<T> &param) : value_(static_cast<double>(static_cast<T>(param))) {}
    template<typename F>
    requires(std::is_invocable_r_v<Tensor, F, const Tensor &> && !std::is_same_v<std::remove_cvref_t<F>, Schedule>) Schedule(F function)
        : value_(0.0), function_(std::move(function)) {}

    /// Returns whether the value is the same for each count.
    bool is_constant() const { return !function_; }
    /// Returns the value of a schedule that is constant.
    const Operand &constant() const { return value_; }
    /// Returns the value for a count, an i32 scalar.
    Operand operator()(const Tensor &count) const { return function_ ? Operand(function_(count)) : value_; }

private:
    Operand value_;
    Function function_;
};

/// Returns the schedule that is always `value` (optax.constant_schedule).
Schedule constant_schedule(double value);

/// Options of polynomial_schedule().
struct PolynomialSchedule {
    double init_value, end_value, power;
    int64_t transition_steps;
    int64_t transition_begin = 0; ///< the schedule is init_value up to this count
};

/// Goes from init_value to end_value: (init_value - end_value) * (1 - n / transition_steps)^power + end_value, with n the count minus
/// transition_begin, between 0 and transition_steps (optax.polynomial_schedule). Without steps it is init_value.
Schedule polynomial_schedule(const PolynomialSchedule &options);

/// Options of linear_schedule().
struct LinearSchedule {
    double init_value, end_value;
    int64_t transition_steps;
    int64_t transition_begin = 0; ///< the schedule is init_value up to this count
};

/// Is polynomial_schedule() with power 1 (optax.linear_schedule).
Schedule linear_schedule(const LinearSchedule &options);

/// Options of exponential_decay().
struct ExponentialDecay {
    double init_value;
    int64_t transition_steps;
    double decay_rate;
    int64_t transition_begin = 0;         ///< the schedule is init_value up to this count
    bool staircase = false;               ///< rounds n / transition_steps down
    std::optional<double> end_value = {}; ///< the schedule stops at this value
};

/// Returns init_value * decay_rate^(n / transition_steps), with n the count minus transition_begin (optax.exponential_decay).
Schedule exponential_decay(const ExponentialDecay &options);

/// Options of piecewise_constant_schedule().
struct PiecewiseConstantSchedule {
    double init_value;
    std::map<int64_t, double> boundaries_and_scales = {}; ///< count -> factor from this count on
};

/// Starts at init_value, and multiplies by a factor at each boundary (optax.piecewise_constant_schedule). Throws UserError for a negative
/// factor.
Schedule piecewise_constant_schedule(const PiecewiseConstantSchedule &options);

/// Options of cosine_decay_schedule().
struct CosineDecaySchedule {
    double init_value;
    int64_t decay_steps;
    double alpha = 0;    ///< the last value, as a part of init_value
    double exponent = 1; ///< the power of the cosine
};

/// Returns init_value * ((1 - alpha) * c^exponent + alpha), with c = (1 + cos(pi * n / decay_steps)) / 2 and n the count, at most
/// decay_steps (optax.cosine_decay_schedule). Throws UserError if decay_steps is not positive.
Schedule cosine_decay_schedule(const CosineDecaySchedule &options);

/// Options of warmup_cosine_decay_schedule().
struct WarmupCosineDecaySchedule {
    double init_value, peak_value;
    int64_t warmup_steps;
    int64_t decay_steps; ///< all steps, warm-up included
    double end_value = 0;
    double exponent = 1; ///< the power of the cosine
};

/// Goes from init_value to peak_value in warmup_steps, on a line, and then to end_value, on a cosine
/// (optax.warmup_cosine_decay_schedule). Throws UserError if decay_steps is not larger than warmup_steps.
Schedule warmup_cosine_decay_schedule(const WarmupCosineDecaySchedule &options);

/// Options of linear_onecycle_schedule().
struct LinearOnecycleSchedule {
    int64_t transition_steps;
    double peak_value;
    double pct_start = 0.3;        ///< the part of the steps that increases the value
    double pct_final = 0.85;       ///< the part of the steps after which the last phase begins
    double div_factor = 25;        ///< the first value is peak_value / div_factor
    double final_div_factor = 1e4; ///< the last value is peak_value / (div_factor * final_div_factor)
};

/// Goes from peak_value / div_factor to peak_value, back, and to peak_value / (div_factor * final_div_factor), on lines
/// (optax.linear_onecycle_schedule). Throws UserError if transition_steps is not positive.
Schedule linear_onecycle_schedule(const LinearOnecycleSchedule &options);

/// Options of cosine_onecycle_schedule().
struct CosineOnecycleSchedule {
    int64_t transition_steps;
    double peak_value;
    double pct_start = 0.3;        ///< the part of the steps that increases the value
    double div_factor = 25;        ///< the first value is peak_value / div_factor
    double final_div_factor = 1e4; ///< the last value is peak_value / (div_factor * final_div_factor)
};

/// Goes from peak_value / div_factor to peak_value and to peak_value / (div_factor * final_div_factor), on cosines
/// (optax.cosine_onecycle_schedule). Throws UserError if transition_steps is not positive.
Schedule cosine_onecycle_schedule(const CosineOnecycleSchedule &options);

/// Uses one schedule after the other (optax.join_schedules): schedules[i + 1] begins at boundaries[i], with the count 0. Throws UserError
/// if there is not one boundary between two schedules.
Schedule join_schedules(const std::vector<Schedule> &schedules, const std::vector<int64_t> &boundaries);

} // namespace scalide

#include "tool/run_watch.h"
#include <cmath>

namespace scalide {

namespace {

bool is_positive(float value) { return value > 0 && std::isfinite(value); }

} // namespace

void TensorTrack::see(int64_t step, const Sample &sample) {
    lines++;
    const float amax = sample[RunStatistic::amax], scale = sample[RunStatistic::scale];
    const bool is_infinite = sample[RunStatistic::non_finite] > 0 || std::isinf(amax);
    if (non_finite_step < 0 && is_infinite) non_finite_step = step;
    if (infinite_scale_step < 0 && std::isinf(scale)) infinite_scale_step = step;
    is_scaled |= sample.has(RunStatistic::scale);
    if (!is_infinite) see_vanishing(step, amax);
    see_shares(step, sample);
    see_ratio(step, amax, scale);
    if (is_positive(amax)) {
        see_jump(step, std::log2(amax), amax_, amax_jump);
        if (first_amax < 0) first_amax = amax;
        last_amax = amax;
        most_amax = std::max(most_amax, amax);
    }
    if (rms < 0) rms = sample[RunStatistic::rms];
    if (rms > 0 && sample[RunStatistic::rms] == rms) constant_lines++;
    see_rms(step, sample[RunStatistic::rms]);
    if (is_positive(scale) && is_positive(amax)) see_jump(step, std::log2(scale), scale_, scale_jump);
    if (amax == 0 && !is_infinite) empty_lines++;
    last_step = step;
}

void TensorTrack::see_shares(int64_t step, const Sample &sample) {
    if (sample.has(RunStatistic::zeros)) {
        zero_sum += sample[RunStatistic::zeros];
        most_zeros = std::max<double>(most_zeros, sample[RunStatistic::zeros]);
        subnormal_sum += std::max(0.0F, sample[RunStatistic::subnormal]);
        zero_lines++;
    }
    if (!sample.has(RunStatistic::saturated)) return;
    const double count = sample[RunStatistic::saturated];
    const bool is_more = count >= run_limits::saturated_least && count >= run_limits::saturated_more * saturated_before;
    if (is_more && saturated_step < 0) saturated_step = step;
    if (saturated_step < 0) {
        saturated_before = std::max(saturated_before, count);
    } else if (count > saturated) {
        saturated = count;
        saturated_amax = sample[RunStatistic::amax];
        saturated_scale = sample[RunStatistic::scale];
    }
}

void TensorTrack::see_jump(int64_t step, double exponent, Recent &before, Jump &jump) const {
    if (jump.step < 0 && before.is_known() && exponent - before.largest() >= run_limits::jump) {
        jump = {step, last_step, before.largest(), exponent, 0, 0};
    } else if (jump.step >= 0) {
        jump.lines++;
        if (exponent > jump.from + run_limits::jump / 2) jump.stays++;
    }
    before.add(exponent);
}

void TensorTrack::see_vanishing(int64_t step, float amax) {
    if (amax == 0 && vanished_step < 0 && amax_.is_known()) {
        vanished_step = step;
        vanished_before = last_step;
        vanished_amax = last_amax;
    }
    if (vanished_step < 0) return;
    lines_since_vanished++;
    vanished_lines += amax == 0;
}

void TensorTrack::see_rms(int64_t step, float now) {
    if (is_positive(now) && is_positive(last_rms)) {
        const double change = std::abs(std::log2(now / last_rms)), usual = rms_.is_known() ? rms_.largest() : change;
        if (rms_jump.step < 0 && change >= run_limits::replaced && change >= run_limits::replaced_more * usual) {
            rms_jump = {step, last_step, std::log2(last_rms), std::log2(now), 0, 0};
            usual_rms_change = usual;
        }
        rms_.add(change);
    }
    last_rms = now;
}

/// Follows scale / amax. Where it is far above its usual values for some lines, the scale does not fit the tensor.
void TensorTrack::see_ratio(int64_t step, float amax, float scale) {
    const bool is_outlier =
        std::isinf(amax) || (is_positive(amax) && amax_.is_known() && std::log2(amax) - amax_.largest() >= run_limits::misfit);
    if (is_outlier) {
        outlier_ = amax;
        outlier_step_ = step;
    }
    if (!is_positive(scale) || !is_positive(amax)) return;
    const double exponent = std::log2(scale / amax);
    if (ratio_.is_known() && exponent - ratio_.largest() >= run_limits::misfit)
        return extend_misfit(step, amax, scale, exponent - ratio_.largest());
    open_.is_open = false;
    ratio_.add(exponent);
}

void TensorTrack::extend_misfit(int64_t step, float amax, float scale, double exponent) {
    if (!open_.is_open) open_ = {.first = step, .scale = scale, .is_open = true, .outlier_step = outlier_step_, .outlier = outlier_};
    open_.last = step;
    open_.lines++;
    open_.exponent = std::max(open_.exponent, exponent);
    open_.amax = amax;
    open_.is_constant &= scale == open_.scale;
    if (open_.lines > misfit.lines) misfit = open_;
}

void RunWatch::visit(int64_t step, const std::vector<int> &tensors, const std::vector<Sample> &samples) {
    const bool is_bad = std::ranges::any_of(samples, [](const Sample &each) { return each[RunStatistic::non_finite] > 0; });
    if (is_bad && non_finite_step_ < 0) {
        non_finite_step_ = step;
        for (const TensorTrack &track : tracks_) amax_then_.push_back(track.last_amax);
        for (size_t i = 0; i < tensors.size(); i++) {
            const auto index = static_cast<size_t>(tensors[i]);
            if (index >= amax_then_.size()) amax_then_.resize(index + 1, not_collected);
            amax_then_[index] = samples[i][RunStatistic::non_finite] > 0 ? not_collected : samples[i][RunStatistic::amax];
        }
    }
    for (size_t i = 0; i < tensors.size(); i++) {
        const auto index = static_cast<size_t>(tensors[i]);
        if (index >= tracks_.size()) tracks_.resize(index + 1);
        tracks_[index].see(step, samples[i]);
    }
}

} // namespace scalide

#include "tool/run_findings.h"
#include "ir/words.h"
#include <cmath>
#include <fmt/format.h>
#include <limits>

namespace scalide {

namespace {

/// What to do about each kind of finding.
struct FindingKind {
    const char *name;
    Severity severity;
    const char *todo;
};
constexpr FindingKind finding_kinds[] = {
    {"non-finite", Severity::bad,
     "Look at the operands of this operator first: a division, a logarithm, or scores that are too large. Replay the step with 'scalide "
     "run "
     "--check-finite'."},
    {"infinite scale", Severity::bad,
     "An infinity entered the history of a delayed scale. Keep it out of the inputs, or use current scales ('scale: {by: max}')."},
    {"frozen scale", Severity::bad,
     "Shorten the history of the delayed scale, keep the outlier out of the batch, or use current scales ('scale: {by: max}')."},
    {"unfit scale", Severity::warn,
     "Compare the scale with amax in the plot of the tensor. The rule of the policy chooses how the scale is computed."},
    {"saturation", Severity::bad,
     "The scale is too small for these values. Use a current scale, a larger margin, or calibrate again with data such as these."},
    {"vanished", Severity::bad,
     "Look at this step: a scale of 0, a mask that removes everything, or units that died. All tensors after it lack its numbers."},
    {"replaced state", Severity::bad,
     "Look at what happened between the steps: a checkpoint with a wrong scale, or code that changed the state. If the step itself made "
     "the change, look at the learning rate."},
    {"jump", Severity::bad,
     "Look for the cause in this step: an unusual batch, or a checkpoint with a wrong scale. Compare the tensor with its siblings."},
    {"sibling", Severity::bad, "Compare the scale and the data of this tensor in the checkpoint with its siblings."},
    {"stagnation", Severity::bad,
     "Keep a copy of the state in f32 (a policy with '_master'), round at random ('f16_scaled'), or use larger updates."},
    {"underflow", Severity::warn,
     "Give this conversion a scale ('scale: {by: max}'), use a format with more exponent bits, or scale the loss."},
    {"zero gradient", Severity::bad,
     "Nothing before this operator trains. Find the first tensor of the backward pass whose elements become 0, and give it a scale."},
    {"zero tensor", Severity::warn,
     "All units before it may be dead, or its input is empty. Look at the tensors that it is computed from."},
    {"no gradient", Severity::warn, "Look for a stop_gradient, or for a loss that does not depend on it."},
    {"saturated units", Severity::warn,
     "Gradients through these units are about 0. Make the weights or the inputs before them smaller, or normalize the inputs."},
    {"zero argument", Severity::warn, "If it is a parameter, its updates are 0. If it is data, the batches are empty."},
    {"constant parameter", Severity::warn,
     "Its updates may be 0, or smaller than the spacing of its format. Look at its gradient and at the learning rate, or keep a copy in "
     "f32."},
    {"growth", Severity::warn,
     "Values that grow all the time overflow later. Check the learning rate, the weight decay and the normalization."},
    {"loss scale", Severity::warn,
     "Gradients overflow in many steps. Look for the first tensor of the backward pass with an infinity or a NaN."},
    {"loss not finite", Severity::bad, "Look at the first tensor with an infinity or a NaN, in this step or before it."},
    {"loss jump", Severity::warn, "Look at the tensors that change in the same step."},
    {"loss flat", Severity::warn, "Look for gradients that are 0 or mostly lost, and check the learning rate."},
    {"loss rises", Severity::warn, "Look at the tensors that change where the loss begins to rise."},
    {"against", Severity::warn, "Look at the tensors that change in or before this step."},
    {"odd format", Severity::warn,
     "Look at the rule of the policy that decides for this operand: 'scalide explain --matmuls' prints its conditions."},
    {"no steps", Severity::bad, "The run ended before its first line, or the files belong to no run."},
    {"missing", Severity::note, "Write these numbers in the next run, so that the report can use them."},
    {"torn", Severity::note, "The process was probably killed while it wrote. All lines before are complete."},
    {"normal", Severity::note, ""},
};

Finding finding_of(const std::string &kind, std::string text, int tensor = -1, int64_t step = -1) {
    const auto row = std::ranges::find(finding_kinds, kind, [](const FindingKind &each) { return std::string(each.name); });
    return {row->severity, kind, std::move(text), row->todo, tensor, step};
}

/// Returns "4000", "1.2e+07".
std::string number_text(double value) { return std::isinf(value) ? "infinity" : fmt::format("{:.4g}", value); }

std::string percent(double share) { return share > 0 && share < 0.001 ? "less than 0.1 %" : fmt::format("{:.3g} %", 100 * share); }

std::string times(double exponent) { return fmt::format("{:.4g}", std::exp2(std::abs(exponent))); }

/// Findings of one kind that begin in one step become one finding: the first tensor of the program, and the number of the others.
std::vector<Finding> merged(std::vector<Finding> findings) {
    sort_findings(findings);
    std::vector<Finding> whole;
    std::vector<int> more;
    for (Finding &finding : findings) {
        const auto same = std::ranges::find_if(
            whole, [&](const Finding &each) { return each.kind == finding.kind && each.step == finding.step && finding.tensor >= 0; });
        if (same == whole.end()) {
            whole.push_back(std::move(finding));
            more.push_back(0);
        } else {
            more[static_cast<size_t>(same - whole.begin())]++;
        }
    }
    for (size_t i = 0; i < whole.size(); i++)
        if (more[i] > 0)
            whole[i].text +=
                fmt::format(" {} other {} the same, later in the program.", more[i], more[i] == 1 ? "tensor does" : "tensors do");
    return whole;
}

double median_of(std::vector<double> values) {
    if (values.empty()) return 0;
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::ranges::nth_element(values, middle);
    return *middle;
}

/// Returns the name of a tensor with `#` instead of each number: tensors of repeated layers have the same pattern. Names of computed
/// tensors may be numbers alone, so the operator and the source line also count.
std::string pattern_of(const LoggedTensor &tensor, const RunProgram &program) {
    std::string pattern = tensor.use + "|" + tensor.format + "|" + tensor.direction + "|";
    if (!program.is_argument(tensor)) pattern += tensor.op + "|" + tensor.source + "|";
    for (const char letter : tensor.tensor) {
        if (letter >= '0' && letter <= '9') {
            if (pattern.back() != '#') pattern += '#';
        } else {
            pattern += letter;
        }
    }
    return pattern;
}

/// The findings about the statistics of one tensor.
class TensorFindings {
public:
    TensorFindings(const RunLog &log, size_t index, const RunWatch &watch, const RunProgram &program, std::vector<Finding> &findings)
        : log_(log), tensor_(log.tensors[index]), watch_(watch), track_(watch.tracks()[index]), program_(program),
          is_state_(program.is_state(tensor_) || tensor_.use.starts_with("inout")), index_(static_cast<int>(index)), findings_(findings) {}

    void add_all() {
        add_non_finite();
        add_misfit();
        add_saturation();
        add_jump(track_.amax_jump, "its largest magnitude");
        if (track_.amax_jump.step < 0) add_jump(track_.scale_jump, "its scale");
        add_replaced();
        add_vanished();
        add_saturated_units();
        add_growth();
        if (is_state_) add_stagnation();
        add_losses();
    }

private:
    void add(const std::string &kind, int64_t step, const std::string &words) {
        findings_.push_back(finding_of(kind, described(tensor_) + words, index_, step));
    }

    void add_non_finite() {
        if (track_.non_finite_step >= 0)
            add("non-finite", track_.non_finite_step, fmt::format(" has an infinity or a NaN in step {}.", track_.non_finite_step));
        if (track_.infinite_scale_step >= 0)
            add("infinite scale", track_.infinite_scale_step,
                fmt::format(": its scale is infinite in step {}.", track_.infinite_scale_step));
    }

    void add_misfit() {
        const Misfit &misfit = track_.misfit;
        if (misfit.lines < run_limits::misfit_lines) return;
        const std::string constant = misfit.is_constant ? fmt::format(" The scale stays {} all the time.", number_text(misfit.scale)) : "";
        const std::string fact = fmt::format(": from step {} to step {}, its scale is {} times larger for its values than before.{}",
                                             misfit.first, misfit.last, times(misfit.exponent), constant);
        const bool is_after_outlier = misfit.outlier_step >= 0 && misfit.outlier_step <= misfit.first;
        if (is_after_outlier)
            return add("frozen scale", misfit.outlier_step,
                       fmt::format("{} The cause is step {}, in which its largest magnitude is {}. Small elements are lost meanwhile.",
                                   fact, misfit.outlier_step, number_text(misfit.outlier)));
        add("unfit scale", misfit.first, fact + " Small elements are lost meanwhile.");
    }

    void add_saturation() {
        const double share = tensor_.elements > 0 ? track_.saturated / tensor_.elements : 0;
        if (track_.saturated_step < 0 || share < run_limits::saturated) return;
        std::string words = fmt::format(": up to {} of its elements saturate, from step {} on", percent(share), track_.saturated_step);
        const double bound = tensor_.largest * (track_.is_scaled ? track_.saturated_scale : 1);
        if (bound > 0 && track_.saturated_amax > 0)
            words += fmt::format(". Its largest magnitude is {}, which is {:.4g} times the largest number that {} holds {}",
                                 number_text(track_.saturated_amax), track_.saturated_amax / bound, tensor_.format,
                                 track_.is_scaled ? "with its scale" : "without a scale");
        add("saturation", track_.saturated_step, words + "." + operator_text());
        if (!track_.is_scaled)
            findings_.back().todo = "Give the conversion a scale ('scale: {by: max}'), use a format with more exponent bits, or make the "
                                    "values smaller.";
    }

    std::string operator_text() const {
        const std::string producer = program_.producer_of(tensor_);
        return producer.empty() ? "" : fmt::format(" Its operator is {}.", producer);
    }

    void add_jump(const Jump &jump, const std::string &what) {
        if (jump.step < 0) return;
        const std::string later = jump.lines == 0               ? ""
                                  : 2 * jump.stays > jump.lines ? " It stays there afterwards."
                                                                : " It returns afterwards.";
        add("jump", jump.step,
            fmt::format(": {} grows {} times from step {} to step {}, from {} to {}.{}{}", what, times(jump.to - jump.from), jump.before,
                        jump.step, number_text(std::exp2(jump.from)), number_text(std::exp2(jump.to)), later,
                        changed_between(jump.before, jump.step)));
    }

    /// A state whose rms changes far more than in all steps before. A wrong scale of a checkpoint multiplies all elements.
    void add_replaced() {
        const Jump &jump = track_.rms_jump;
        if (!is_state_ || jump.step < 0 || jump.step == track_.amax_jump.step) return;
        add("replaced state", jump.step,
            fmt::format(
                ": its root mean square changes by a factor of {} from step {} to step {}, from {} to {}, and by {} at most between "
                "the lines before.{}",
                number_text(std::exp2(jump.to - jump.from)), jump.before, jump.step, number_text(std::exp2(jump.from)),
                number_text(std::exp2(jump.to)), fmt::format("{:.2g} %", 100 * (std::exp2(track_.usual_rms_change) - 1)),
                changed_between(jump.before, jump.step)));
    }

    /// A tanh whose rms is near its limit has a derivative near 0: 1 - 0.95^2 = 0.1.
    void add_saturated_units() {
        if (track_.last_rms >= run_limits::saturated_units && track_.first_amax <= 1 && program_.operator_of(tensor_) == "tanh")
            add("saturated units", -1,
                fmt::format(" has the root mean square {}, and its operator {} ends at 1: most of its units are at their limit.",
                            number_text(track_.last_rms), program_.producer_of(tensor_)));
    }

    /// A tensor that becomes 0 as a whole, and stays so.
    void add_vanished() {
        if (track_.vanished_lines < run_limits::vanished_lines || 2 * track_.vanished_lines < track_.lines_since_vanished ||
            2 * track_.empty_lines > track_.lines)
            return;
        add("vanished", track_.vanished_step,
            fmt::format(" is exactly 0 from step {} on. Its largest magnitude was {} before.{}{}", track_.vanished_step,
                        number_text(track_.vanished_amax), operator_text(), changed_between(track_.vanished_before, track_.vanished_step)));
    }

    /// Returns the rms of a tensor in one step; not_collected if the columns have it no more.
    float rms_in(int64_t step, int tensor) const {
        const auto column =
            std::ranges::find_if(log_.columns, [&](const StepColumn &each) { return each.first == step && each.last == step; });
        const auto index = static_cast<size_t>(tensor);
        return column == log_.columns.end() || index >= column->samples.size() ? not_collected : column->samples[index][RunStatistic::rms];
    }

    /// Says if a state is not what the step before has written.
    std::string changed_between(int64_t before, int64_t step) const {
        const int update = is_state_ && step == before + 1 ? program_.update_of(tensor_, log_) : -1;
        if (update < 0) return "";
        const float wrote = rms_in(before, update), reads = rms_in(step, index_);
        if (!(wrote > 0) || reads < 0 || std::abs(std::log2(reads / wrote)) < run_limits::replaced) return "";
        return fmt::format(" Step {} wrote the root mean square {}, and step {} reads {}: the state was changed between the steps.", before,
                           number_text(wrote), step, number_text(reads));
    }

    void add_growth() {
        if (track_.amax_jump.step >= 0 || track_.first_amax <= 0) return;
        const double exponent = std::log2(track_.last_amax / track_.first_amax);
        if (exponent >= run_limits::jump)
            add("growth", -1,
                fmt::format(": its largest magnitude grows {} times over the run, from {} to {}.", times(exponent),
                            number_text(track_.first_amax), number_text(track_.last_amax)));
    }

    /// A number moves only by more than half of the spacing of its format. A scaled state may be rounded at random.
    void add_stagnation() {
        if (program_.is_state(tensor_) && program_.largest_update(tensor_, log_, {}) == 0)
            return add("no gradient", -1, " never changes, because its update is 0 for all data: no gradient reaches it.");
        const std::optional<Dtype> format = tensor_.use.ends_with("argument") ? parse_dtype(tensor_.format) : std::nullopt;
        if (format && is_float(*format) && !track_.is_scaled && track_.rms > 0) {
            std::vector<float> amax;
            for (const TensorTrack &track : watch_.tracks()) amax.push_back(track.non_finite_step < 0 ? track.most_amax : not_collected);
            const double update = program_.largest_update(tensor_, log_, amax);
            const double spacing =
                std::exp2(std::floor(std::log2(track_.rms)) - (*format == Dtype::f32 ? 23 : format_of(*format).mantissa_bits));
            if (update < spacing / 2 && update > 0)
                return add(
                    "stagnation", -1,
                    fmt::format(": its updates are at most {} in all lines, which is less than half the spacing of {} ({}) at its root "
                                "mean square, {}. So most of its elements never change.",
                                number_text(update), tensor_.format, number_text(spacing), number_text(track_.rms)));
        }
        if (track_.constant_lines >= run_limits::constant_lines && track_.constant_lines == track_.lines)
            add("constant parameter", -1,
                fmt::format(" does not change: its root mean square is {} in all {} lines of statistics.", number_text(track_.rms),
                            track_.lines));
    }

    void add_losses() {
        if (track_.lines > 0 && 2 * track_.empty_lines > track_.lines) {
            if (program_.is_always_zero(tensor_)) return;
            const char *kind = program_.is_argument(tensor_)     ? "zero argument"
                               : tensor_.direction == "backward" ? "zero gradient"
                                                                 : "zero tensor";
            return add(kind, -1,
                       fmt::format(" is exactly 0 in {} of {} lines of statistics.{}", track_.empty_lines, track_.lines, operator_text()));
        }
        if (track_.zero_lines == 0 || tensor_.elements <= 0) return;
        const double zeros = track_.mean_zeros() / tensor_.elements,
                     subnormal = track_.subnormal_sum / track_.zero_lines / tensor_.elements;
        if (zeros < run_limits::zeros && zeros + subnormal < run_limits::imprecise) return;
        add("underflow", -1,
            fmt::format(": {} of its elements become 0 by rounding to {}, and {} become subnormal, on average over {} lines of statistics.",
                        percent(zeros), tensor_.format, percent(subnormal), track_.zero_lines));
    }

    const RunLog &log_;
    const LoggedTensor &tensor_;
    const RunWatch &watch_;
    const TensorTrack &track_;
    const RunProgram &program_;
    bool is_state_;
    int index_;
    std::vector<Finding> &findings_;
};

/// A tensor is exactly 0 because of the first tensor before it that loses its elements: this tensor is the cause.
void promote_causes(const RunLog &log, const RunWatch &watch, std::vector<Finding> &findings) {
    const auto first_of = [&](const std::string &kind) {
        std::optional<int> first;
        for (const Finding &finding : findings)
            if (finding.kind == kind) first = std::min(first.value_or(finding.position), finding.position);
        return first;
    };
    const std::optional<int> gradient = first_of("zero gradient"), tensor = first_of("zero tensor"), vanished = first_of("vanished");
    for (Finding &finding : findings) {
        if (finding.kind == "zero tensor" && gradient && finding.position <= *gradient) finding.severity = Severity::bad;
        if (finding.kind != "underflow") continue;
        const auto index = static_cast<size_t>(finding.tensor);
        const bool is_lost = watch.tracks()[index].mean_zeros() >= run_limits::lost * log.tensors[index].elements;
        const bool is_before = (gradient && finding.position <= *gradient) || (tensor && finding.position <= *tensor) ||
                               (vanished && finding.position <= *vanished);
        if (!is_lost || !is_before) continue;
        finding.severity = Severity::bad;
        finding.step = log.first_step;
    }
}

/// Says what can be the reason for the first infinity or NaN of the run.
void explain_non_finite(const RunLog &log, const RunWatch &watch, const RunProgram &program, std::vector<Finding> &findings) {
    const auto before = [](const Finding &a, const Finding &b) {
        return std::tuple(a.position, a.tensor) < std::tuple(b.position, b.tensor);
    };
    Finding *first = nullptr;
    for (Finding &finding : findings)
        if (finding.kind == "non-finite" && finding.step == watch.non_finite_step() && finding.tensor >= 0 &&
            (!first || before(finding, *first)))
            first = &finding;
    if (first == nullptr) return;
    const LoggedTensor &tensor = log.tensors[static_cast<size_t>(first->tensor)];
    if (program.is_argument(tensor)) {
        first->text += " It is an argument, so the program does not make it.";
        first->todo = program.is_state(tensor) ? "Look at the checkpoint, or at the code that made this state."
                                               : "Look for it in the data of this step, and check data before a step.";
    } else if (const std::string reason = program.reason_of(tensor, log, watch.amax_then()); !reason.empty()) {
        first->text += " The tensors before it are finite, so it comes from " + reason + ".";
        first->todo = "'Library.first_non_finite(..., interpret=\"stored\")' names the element, if you replay the step.";
    }
}

/// Compares each tensor with the tensors that have its name except for numbers: the same parameter of other layers.
void add_siblings(const RunLog &log, const std::vector<TensorTrack> &tracks, const RunProgram &program, std::vector<Finding> &findings) {
    std::map<std::string, std::vector<size_t>> groups;
    for (size_t i = 0; i < tracks.size(); i++)
        if (tracks[i].first_amax > 0) groups[pattern_of(log.tensors[i], program)].push_back(i);
    for (const auto &[pattern, members] : groups) {
        std::vector<double> exponents;
        for (const size_t each : members) exponents.push_back(std::log2(tracks[each].first_amax));
        const double median = median_of(exponents);
        for (size_t i = 0; members.size() >= 3 && i < members.size(); i++)
            if (exponents[i] - median >= run_limits::sibling)
                findings.push_back(
                    finding_of("sibling",
                               fmt::format("{}: its largest magnitude is {}, {} times the median of its {} siblings, from the start.",
                                           described(log.tensors[members[i]]), number_text(tracks[members[i]].first_amax),
                                           times(exponents[i] - median), members.size()),
                               static_cast<int>(members[i]), log.first_step));
    }
}

/// Finds operands of the forward pass with fewer bits of precision than most others.
void add_odd_formats(const RunLog &log, std::vector<Finding> &findings) {
    std::map<std::string, std::vector<int>> operands;
    size_t count = 0;
    for (size_t i = 0; i < log.tensors.size(); i++) {
        const LoggedTensor &tensor = log.tensors[i];
        if (tensor.direction == "backward" || (!tensor.use.starts_with("dot_general") && !tensor.use.starts_with("conv_"))) continue;
        operands[tensor.format].push_back(static_cast<int>(i));
        count++;
    }
    const auto odd = operands.find("f8_e5m2");
    if (odd == operands.end() || 2 * odd->second.size() > count) return;
    for (const int index : odd->second)
        findings.push_back(
            finding_of("odd format",
                       fmt::format("{} is stored in f8_e5m2, which has 2 bits of mantissa, in the forward pass. {} of {} other operands "
                                   "have another format.",
                                   described(log.tensors[static_cast<size_t>(index)]), count - odd->second.size(), count),
                       index, log.first_step));
}

/// Returns the number of the tensor of an event, or -1.
int tensor_of(const RunLog &log, const NonFiniteEvent &event) {
    const auto known = std::ranges::find_if(log.tensors, [&](const LoggedTensor &each) {
        return each.tensor == event.tensor && (event.scope.empty() || each.scope == event.scope);
    });
    return known == log.tensors.end() ? -1 : static_cast<int>(known - log.tensors.begin());
}

/// True for an event that Metrics wrote: the event of a check has the index of the element.
bool is_in_statistics(const RunLog &log, const std::vector<TensorTrack> &tracks, const NonFiniteEvent &event) {
    const int tensor = tensor_of(log, event);
    return event.index.empty() && event.first >= 0 && tensor >= 0 && tensor < std::ssize(tracks) &&
           tracks[static_cast<size_t>(tensor)].non_finite_step == event.step;
}

/// An event names the first tensor of a step. If the statistics show the same, they explain more, and the event has the element.
void add_events(const RunLog &log, const std::vector<TensorTrack> &tracks, std::vector<Finding> &findings) {
    const NonFiniteEvent &event = log.events.front();
    if (is_in_statistics(log, tracks, event)) return;
    std::erase_if(findings, [](const Finding &finding) { return finding.kind == "non-finite"; });
    std::string words =
        fmt::format("{} is the first tensor with an infinity or a NaN, in step {}", name_to_string(event.tensor), event.step);
    if (!event.index.empty()) {
        std::string axes;
        for (const int64_t axis : event.index) axes += (axes.empty() ? "" : ", ") + std::to_string(axis);
        words += ", at index [" + axes + "]";
    } else if (event.first >= 0) {
        words += fmt::format(", at element {} in row-major order", event.first);
    }
    if (!event.op.empty()) words += ". The operator is " + event.op;
    if (!event.scope.empty()) words += (event.op.empty() ? ". It is in " : " in ") + event.scope;
    if (!event.source.empty()) words += " (" + event.source + ")";
    findings.push_back(finding_of("non-finite", words + ".", tensor_of(log, event), event.step));
    findings.back().position = -1;
}

/// Says where in its tensor the first infinity or NaN is, if the event is no finding of its own.
void add_places(const RunLog &log, const std::vector<TensorTrack> &tracks, std::vector<Finding> &findings) {
    for (const NonFiniteEvent &event : log.events) {
        if (!is_in_statistics(log, tracks, event)) continue;
        const int tensor = tensor_of(log, event);
        for (Finding &finding : findings)
            if (finding.kind == "non-finite" && finding.tensor == tensor && finding.step == event.step)
                finding.text += fmt::format(" Its first one is element {} in row-major order.", event.first);
    }
}

/// Median and time of the last losses.
double median_before(const std::vector<MetricPoint> &points, size_t end) {
    std::vector<double> values;
    for (size_t i = end > run_limits::loss_window ? end - run_limits::loss_window : 0; i < end; i++) values.push_back(points[i].value);
    return median_of(values);
}

double mean_of(const std::vector<MetricPoint> &points, size_t begin, size_t end) {
    double sum = 0;
    for (size_t i = begin; i < end; i++) sum += points[i].value;
    return sum / double(end - begin);
}

/// The standard error of the difference of two means.
double noise_of(const std::vector<MetricPoint> &points, size_t quarter) {
    double squares = 0;
    for (const size_t begin : {size_t(0), points.size() - quarter})
        for (size_t i = begin; i < begin + quarter; i++) squares += std::pow(points[i].value - mean_of(points, begin, begin + quarter), 2);
    return std::sqrt(squares / double(quarter * quarter));
}

void add_trend(const std::string &name, const std::vector<MetricPoint> &points, std::vector<Finding> &findings) {
    const size_t quarter = points.size() / 4;
    if (quarter < run_limits::loss_least / 2) return;
    const double first = mean_of(points, 0, quarter), last = mean_of(points, points.size() - quarter, points.size());
    const auto least = std::ranges::min_element(points, {}, &MetricPoint::value);
    if (std::abs(last - first) <= run_limits::loss_flat * std::abs(first))
        findings.push_back(
            finding_of("loss flat", fmt::format("{} does not fall: {} on average in the first quarter of the run, {} in the last.", name,
                                                number_text(first), number_text(last))));
    else if (last - first > run_limits::loss_noise * noise_of(points, quarter) || last > 2 * std::abs(mean_of(points, 0, points.size())))
        findings.push_back(finding_of("loss rises",
                                      fmt::format("{} is larger at the end than at the beginning: {} on average in the last quarter of "
                                                  "the run, {} in the first. It is least in step {}, {}.",
                                                  name, number_text(last), number_text(first), least->step, number_text(least->value)),
                                      -1, least->step));
}

void add_loss(const RunLog &log, std::vector<Finding> &findings) {
    const std::string name = loss_of(log);
    if (name.empty()) return;
    const std::vector<MetricPoint> &points = log.metrics.at(name);
    const auto bad = std::ranges::find_if(points, [](const MetricPoint &point) { return !std::isfinite(point.value); });
    if (bad != points.end())
        findings.push_back(finding_of(
            "loss not finite", fmt::format("{} is {} from step {} on.", name, std::isnan(bad->value) ? "NaN" : "infinite", bad->step), -1,
            bad->step));
    for (size_t i = run_limits::loss_least; i < static_cast<size_t>(bad - points.begin()); i++) {
        const double before = median_before(points, i);
        if (before <= 0 || points[i].value < run_limits::loss_jump * before) continue;
        findings.push_back(finding_of(
            "loss jump",
            fmt::format("{} jumps in step {}, from {} to {}.", name, points[i].step, number_text(before), number_text(points[i].value)), -1,
            points[i].step));
        return;
    }
    if (bad == points.end()) add_trend(name, points, findings);
}

/// Finds a dynamic loss scale that falls far below its first value.
void add_loss_scale(const RunLog &log, std::vector<Finding> &findings) {
    for (const std::string &name : log.metric_names) {
        const std::vector<MetricPoint> &points = log.metrics.at(name);
        const double first = points.front().value, last = points.back().value;
        if (!name.ends_with("scale") || first <= 0 || last <= 0 || std::log2(first / last) < run_limits::falls) continue;
        findings.push_back(
            finding_of("loss scale", fmt::format("{} falls from {} to {} over the run.", name, number_text(first), number_text(last))));
    }
}

void add_difference(const RunLog &log, const RunLog &other, std::vector<Finding> &findings) {
    const std::string name = loss_of(log);
    const auto theirs = other.metrics.find(name);
    if (name.empty() || theirs == other.metrics.end()) return;
    std::map<int64_t, double> values;
    for (const MetricPoint &point : theirs->second) values[point.step] = point.value;
    int64_t first = -1, last = -1;
    double at_first = 0, at_last = 0;
    for (const MetricPoint &point : log.metrics.at(name)) {
        const auto value = values.find(point.step);
        if (value == values.end() || value->second == 0 || !std::isfinite(point.value)) continue;
        last = point.step;
        at_last = point.value / value->second - 1;
        if (first < 0 && std::abs(at_last) > run_limits::against) first = last, at_first = at_last;
    }
    if (first >= 0)
        findings.push_back(finding_of(
            "against",
            fmt::format("{} differs from {} by {:+.3g} % in step {}, the first step with more than {}, and by {:+.3g} % in step {}.", name,
                        other.name, 100 * at_first, first, percent(run_limits::against), 100 * at_last, last),
            -1, first));
}

/// True if the kernels of the run round the tensor to this format. Arguments and results have their format already.
bool is_rounded(const LoggedTensor &tensor) {
    const std::optional<Dtype> format = parse_dtype(tensor.format);
    return (!format || size_of(*format) < 4) && tensor.use != "argument" && tensor.use != "result";
}

/// Says which numbers the files lack. Without them, the report cannot say that a run is normal.
void add_missing(const RunLog &log, std::vector<Finding> &findings) {
    if (log.is_torn)
        findings.push_back(finding_of(
            "torn", fmt::format("The last line of a file is not complete. The run ends at step {}.", log.last_step), -1, log.last_step));
    std::vector<std::string> lacks;
    if (loss_of(log).empty()) lacks.push_back("no metric is named loss");
    if (log.tensors.empty() || log.statistic_lines == 0) lacks.push_back("the files have no statistics of tensors");
    for (const std::string name : {"amax", "zeros", "saturated", "non_finite"}) {
        const bool is_of_rounding = name == "zeros" || name == "saturated";
        const auto count = std::ranges::count_if(log.tensors, [&](const LoggedTensor &each) {
            return !each.collect.empty() && std::ranges::find(each.collect, name) == each.collect.end() &&
                   (!is_of_rounding || is_rounded(each));
        });
        if (count > 0) lacks.push_back(fmt::format("{} of {} tensors have no statistic {}", count, log.tensors.size(), name));
    }
    for (const std::string &each : lacks) findings.push_back(finding_of("missing", "Not checked: " + each + "."));
}

} // namespace

std::string described(const LoggedTensor &tensor) {
    std::string inner = tensor.use;
    if (!tensor.scope.empty()) inner += (inner.empty() ? "in " : " in ") + tensor.scope;
    if (!tensor.source.empty() && tensor.source != "-") inner += (inner.empty() ? "" : ", ") + tensor.source;
    return name_to_string(tensor.tensor) + (inner.empty() ? "" : " (" + inner + ")");
}

void sort_findings(std::vector<Finding> &findings) {
    const auto rank = [](const Finding &each) {
        return std::ranges::find(finding_kinds, each.kind, [](const FindingKind &kind) { return std::string(kind.name); }) - finding_kinds;
    };
    std::ranges::stable_sort(findings, [&](const Finding &a, const Finding &b) {
        const auto step_of = [](const Finding &each) { return each.step < 0 ? std::numeric_limits<int64_t>::max() : each.step; };
        return std::tuple(a.severity, step_of(a), a.position, rank(a), a.tensor) <
               std::tuple(b.severity, step_of(b), b.position, rank(b), b.tensor);
    });
}

std::string loss_of(const RunLog &log) {
    if (log.metrics.contains("loss")) return "loss";
    const auto found = std::ranges::find_if(log.metric_names, [](const std::string &name) { return name.ends_with("loss"); });
    return found == log.metric_names.end() ? "" : *found;
}

std::vector<Finding> explain_run(const RunLog &log, const RunWatch &watch, const RunProgram &program, const RunLog *against) {
    std::vector<Finding> findings;
    for (size_t i = 0; i < watch.tracks().size(); i++) TensorFindings(log, i, watch, program, findings).add_all();
    if (!log.events.empty()) add_events(log, watch.tracks(), findings);
    add_siblings(log, watch.tracks(), program, findings);
    add_odd_formats(log, findings);
    const std::vector<int> positions = program.positions(log);
    for (Finding &finding : findings)
        if (finding.tensor >= 0) finding.position = positions[static_cast<size_t>(finding.tensor)];
    explain_non_finite(log, watch, program, findings);
    add_places(log, watch.tracks(), findings);
    promote_causes(log, watch, findings);
    add_loss(log, findings);
    add_loss_scale(log, findings);
    if (against) add_difference(log, *against, findings);
    if (log.is_empty()) findings.push_back(finding_of("no steps", "The files contain no step."));
    const bool is_normal = findings.empty();
    add_missing(log, findings);
    if (findings.empty())
        findings.push_back(
            finding_of("normal", fmt::format("Nothing unusual was found in {} tensors and {} metrics, from step {} to step {}.",
                                             log.tensors.size(), log.metrics.size(), log.first_step, log.last_step)));
    else if (is_normal)
        findings.insert(findings.begin(), finding_of("normal", "Nothing unusual was found in the numbers that the files contain."));
    return merged(std::move(findings));
}

} // namespace scalide

#include "interpret/law_check.h"
#include <algorithm>
#include <cmath>
#include <set>

namespace scalide {

namespace {

/// Step of a central difference in f64. The error of the formula is of the order of step^2, and the rounding error of the order of epsilon
/// / step.
constexpr double step = 1e-5, tolerance = 1e-7;
/// The largest number of elements of an operand for which a difference is computed.
constexpr int64_t moved_elements = 8;
/// The smallest distance between an element and a kink of the function.
constexpr double kink_distance = 1e-2;

void leave_kinks(const Rule &rule, LawInput &input) {
    const auto found = rule.check.kinks.find(input.operand);
    if (found == rule.check.kinks.end()) return;
    for (double &element : input.data.data)
        for (double kink : found->second)
            if (std::fabs(element - kink) < kink_distance) element = kink + kink_distance;
}

/// The program of a case. The cotangents of its float results are further arguments. It has one result per float operand: the gradient.
class GradientLaw {
public:
    GradientLaw(LawCheck &check, LawCase law_case, Draw &draw)
        : check_(check), law_case_(std::move(law_case)), forward_(program_of(law_case_, check.rulebook)),
          values_(interpret(forward_, full_values(law_case_), check.rulebook, Mode::real)) {
        for (const Array &value : values_) {
            cotangents_.push_back(value);
            for (double &element : cotangents_.back().data) element = draw_cotangent(draw);
        }
    }

    std::vector<size_t> float_operands() const {
        std::vector<size_t> operands;
        for (size_t i = 0; i < law_case_.inputs.size(); i++)
            if (is_float(law_case_.inputs[i].data.dtype) && !refuses_gradient(law_case_.inputs[i])) operands.push_back(i);
        return operands;
    }
    bool refuses_gradient(const LawInput &input) const {
        const auto found = check_.rule.gradient.find(input.operand);
        return found != check_.rule.gradient.end() && found->second == nullptr;
    }
    void run(Draw &draw);

private:
    /// A straight-through gradient may round the cotangent. Its cotangents have only three bits, which rounding keeps.
    double draw_cotangent(Draw &draw) const {
        return check_.is_straight_through() ? static_cast<double>(draw.integer(1, 7)) / 8 : draw.real(-1, 1);
    }
    std::vector<Array> gradients() const;
    void check_straight_through(const std::vector<Array> &found) const;
    void check_differences(const std::vector<Array> &found, Draw &draw) const;
    double pairing(const std::vector<Array> &inputs) const;
    double difference(size_t operand, size_t element) const;

    LawCheck &check_;
    LawCase law_case_;
    Program forward_;
    std::vector<Array> values_, cotangents_;
};

std::vector<Array> GradientLaw::gradients() const {
    Program program = forward_;
    std::vector<ValueId> outputs, cotangents, wrt;
    std::vector<Array> inputs = full_values(law_case_);
    for (size_t i = 0; i < values_.size(); i++) {
        if (!is_float(values_[i].dtype)) continue;
        outputs.push_back(forward_.results[i].value);
        cotangents.push_back(add_value(program, "ct", program.type(outputs.back())));
        program.arguments.push_back({cotangents.back()});
        inputs.push_back(cotangents_[i]);
    }
    for (size_t operand : float_operands()) wrt.push_back(program.arguments[operand].value);
    const std::vector<ValueId> found = check_.passes.append_vjp(program, check_.rulebook, outputs, cotangents, wrt);
    program.results.clear();
    for (ValueId value : found) program.results.push_back({program.value_name(value), value});
    return interpret(program, inputs, check_.rulebook, Mode::real);
}

/// Returns the sum of cotangent * value over all float results.
double GradientLaw::pairing(const std::vector<Array> &inputs) const {
    const std::vector<Array> values = interpret(forward_, inputs, check_.rulebook, Mode::real);
    double sum = 0;
    for (size_t i = 0; i < values.size(); i++)
        for (size_t j = 0; j < values[i].data.size() && is_float(values[i].dtype); j++) sum += values[i].data[j] * cotangents_[i].data[j];
    return sum;
}

double GradientLaw::difference(size_t operand, size_t element) const {
    std::vector<Array> inputs = full_values(law_case_);
    double &moved = inputs[operand].data[element];
    const double at = moved;
    moved = at + step;
    const double above = pairing(inputs);
    moved = at - step;
    return (above - pairing(inputs)) / (2 * step);
}

void GradientLaw::run(Draw &draw) {
    const std::vector<Array> found = gradients();
    if (check_.is_straight_through()) {
        check_straight_through(found);
    } else {
        check_differences(found, draw);
    }
}

/// Each element of the gradient must be the cotangent of a result at the same index, or 0 where the rule clips it. Only one operand may
/// receive a cotangent.
void GradientLaw::check_straight_through(const std::vector<Array> &found) const {
    const std::vector<size_t> operands = float_operands();
    std::set<std::pair<std::vector<int64_t>, size_t>> passed; // shape and index of the element
    for (size_t i = 0; i < operands.size(); i++) {
        const LawInput &input = law_case_.inputs[operands[i]];
        for (size_t n = 0; n < found[i].data.size(); n++) {
            const double got = found[i].data[n];
            if (got == 0) continue;
            const bool is_cotangent = std::ranges::any_of(cotangents_, [&](const Array &cotangent) {
                return is_float(cotangent.dtype) && cotangent.shape == input.data.shape && cotangent.data[n] == got;
            });
            if (is_cotangent && passed.emplace(input.data.shape, n).second) {
                check_.passed_cotangent();
                continue;
            }
            const auto same_shape = std::ranges::find(cotangents_, input.data.shape, &Array::shape);
            const double expected = is_cotangent || same_shape == cotangents_.end() ? 0 : same_shape->data[n];
            check_.fail("grad", "a straight-through gradient must be the cotangent for one operand and 0 for the others",
                        describe(law_case_, input.name, input.data.shape, {n, got, expected}));
        }
    }
}

void GradientLaw::check_differences(const std::vector<Array> &found, Draw &draw) const {
    const std::vector<size_t> operands = float_operands();
    for (size_t i = 0; i < operands.size(); i++) {
        const Array &x = law_case_.inputs[operands[i]].data;
        const auto count = static_cast<int64_t>(x.data.size());
        internal_check(found[i].shape == x.shape, "the gradient of " + law_case_.inputs[operands[i]].name + " has another shape");
        for (int64_t n = 0; n < std::min(count, moved_elements); n++) {
            const auto element = static_cast<size_t>(draw.integer(0, count - 1));
            const double got = found[i].data[element], expected = difference(operands[i], element);
            // The tolerance is absolute for values below 1, because the rounding error of the sums does not shrink with their difference.
            if (std::fabs(got - expected) <= tolerance * std::max(1.0, std::fabs(expected))) continue;
            check_.fail("grad", "the gradient must equal the central difference of the value",
                        describe(law_case_, law_case_.inputs[operands[i]].name, x.shape, {element, got, expected}));
        }
    }
}

} // namespace

void check_gradient(LawCheck &check, const CheckCase &check_case, uint64_t seed) {
    if (check.rule.check.gradient == "none") return;
    LawCase law_case = draw_case(check.rule, check_case, Scales::plain, seed);
    for (LawInput &input : law_case.inputs) leave_kinks(check.rule, input);
    Draw draw(seed);
    GradientLaw law(check, std::move(law_case), draw);
    if (law.float_operands().empty()) return;
    law.run(draw);
    check.ran_gradient();
}

} // namespace scalide

#include "support/rounding_errors/running_error.h"
#include "support/rounding_errors/roundings.h"
#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>

namespace scalide {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

double distance(double a, double b) {
    if (a == b || (std::isnan(a) && std::isnan(b))) return 0;
    return std::isnan(a) || std::isnan(b) ? infinity : std::fabs(a - b);
}

bool has_error(const Array &array) { return !array.error.empty(); }

/// x + sign * error(x); truth that may be otherwise is.
Array moved(const Array &array, double sign) {
    Array other{array.dtype, array.shape, array.data};
    for (size_t i = 0; i < other.data.size(); i++) {
        double &x = other.data[i];
        x = array.dtype == Dtype::boolean && array.error[i] > 0 ? 1 - x : x + sign * array.error[i];
    }
    return other;
}

/// What errors of the operands make of a sum: f(|x| + error(x)) - f(|x|).
std::vector<double> inherited_by_sum(const Operation &operation) {
    std::vector<double> error =
        sum_of(operation, [](const Array &array, size_t i) { return std::fabs(array.data[i]) + (has_error(array) ? array.error[i] : 0); });
    const std::vector<double> magnitudes = sum_of(operation, [](const Array &array, size_t i) { return std::fabs(array.data[i]); });
    for (size_t i = 0; i < error.size(); i++) error[i] = std::isfinite(error[i]) ? error[i] - magnitudes[i] : 0;
    return error;
}

/// What they make of anything else: how far it moves when they do, one after the other.
std::vector<double> inherited(const Operation &operation, const std::vector<double> &exact) {
    std::vector<double> error(exact.size());
    std::vector<const Array *> operands = operation.operands;
    for (const Array *&operand : operands) {
        const Array *const original = operand;
        if (!has_error(*original)) continue;
        std::vector<double> furthest(exact.size());
        for (const double sign : {1.0, -1.0}) {
            const Array other = moved(*original, sign);
            operand = &other;
            const std::vector<double> got = run_on(operation, operands);
            for (size_t i = 0; i < exact.size(); i++) furthest[i] = std::max(furthest[i], distance(got[i], exact[i]));
        }
        operand = original;
        for (size_t i = 0; i < exact.size(); i++) error[i] += furthest[i];
    }
    return error;
}

void run_with_errors(Operation &operation) {
    Array &result = operation.result();
    const std::vector<double> exact = run_on(operation, operation.operands);
    const bool is_exact = std::ranges::none_of(operation.operands, [](const Array *operand) { return has_error(*operand); });
    std::vector<double> error = own_roundings(operation, exact);
    if (!is_exact) {
        const std::vector<double> more = sums_floats(operation) ? inherited_by_sum(operation) : inherited(operation, exact);
        for (size_t i = 0; i < exact.size(); i++) error[i] += more[i];
    }
    result.data = exact;
    Array above = result, below = result;
    for (size_t i = 0; i < exact.size(); i++) {
        above.data[i] += error[i];
        below.data[i] -= error[i];
    }
    for (Array *array : {&result, &above, &below})
        if (!converts(operation)) store(*array, operation.mode);
    result.error.resize(exact.size());
    for (size_t i = 0; i < exact.size(); i++)
        if (std::isfinite(result.data[i]) || error[i] > 0)
            result.error[i] = std::max(distance(above.data[i], result.data[i]), distance(below.data[i], result.data[i]));
    if (std::ranges::all_of(result.error, [](double e) { return e == 0; })) result.error.clear();
}

} // namespace

std::vector<Array> interpret_with_errors(const Program &program, const std::vector<Array> &inputs, const Rulebook &rulebook, Mode mode) {
    return interpret(program, inputs, rulebook, mode, run_with_errors);
}

std::string difference(const Array &got, const Array &expected, double share) {
    if (got.dtype != expected.dtype || got.shape != expected.shape) return "another dtype or shape";
    for (size_t i = 0; i < expected.data.size(); i++) {
        const double allowed = has_error(expected) ? share * expected.error[i] : 0;
        if (distance(got.data.at(i), expected.data[i]) <= allowed) continue;
        std::ostringstream words;
        words.precision(9);
        words << "element " << i << ": got " << got.data[i] << ", expected " << expected.data[i] << " +- " << allowed;
        return words.str();
    }
    return "";
}

std::string difference(const std::vector<Array> &got, const std::vector<Array> &expected, double share) {
    if (got.size() != expected.size()) return "another number of results";
    for (size_t r = 0; r < expected.size(); r++)
        if (const std::string words = difference(got[r], expected[r], share); !words.empty())
            return "result " + std::to_string(r) + ", " + words;
    return "";
}

} // namespace scalide

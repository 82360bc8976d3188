#include "support/rounding_errors/monte_carlo.h"
#include "support/rounding_errors/roundings.h"
#include <cmath>
#include <limits>
#include <utility>

namespace scalide {

namespace {

/// By a random part of the errors to either side.
void move(std::vector<double> &values, const std::vector<double> &errors, std::mt19937 &random) {
    std::uniform_real_distribution<double> part(-1, 1);
    for (size_t i = 0; i < errors.size(); i++)
        if (errors[i] > 0) values[i] += part(random) * errors[i];
}

/// Of equal numbers that are not finite it is 0.
double squared_distance(double a, double b) {
    if (a == b || (std::isnan(a) && std::isnan(b))) return 0;
    return std::isnan(a) || std::isnan(b) ? std::numeric_limits<double>::infinity() : (a - b) * (a - b);
}

} // namespace

std::vector<Array> interpret_with_random_roundings(const Program &program, std::vector<Array> inputs, const Rulebook &rulebook, Mode mode,
                                                   std::mt19937 &random) {
    for (Array &input : inputs) move(input.data, std::exchange(input.error, {}), random);
    return interpret(program, inputs, rulebook, mode, [&](Operation &operation) {
        Array &result = operation.result();
        result.data = run_on(operation, operation.operands);
        move(result.data, own_roundings(operation, result.data), random);
        if (!converts(operation)) store(result, mode);
    });
}

std::vector<Array> with_drawn_errors(const std::function<std::vector<Array>(std::mt19937 *random)> &run) {
    constexpr int runs = 32;
    constexpr double deviations = 4;
    std::mt19937 random(1);
    std::vector<Array> results = run(nullptr);
    for (Array &result : results) result.error.assign(result.data.size(), 0);
    for (int i = 0; i < runs; i++) {
        const std::vector<Array> moved = run(&random);
        for (size_t r = 0; r < results.size(); r++)
            for (size_t j = 0; j < results[r].data.size(); j++)
                results[r].error[j] += squared_distance(moved[r].data[j], results[r].data[j]);
    }
    for (Array &result : results)
        for (double &error : result.error) error = deviations * std::sqrt(error / runs);
    return results;
}

std::vector<Array> interpret_with_drawn_errors(const Program &program, const std::vector<Array> &inputs, const Rulebook &rulebook,
                                               Mode mode) {
    return with_drawn_errors([&](std::mt19937 *random) {
        if (random == nullptr) return interpret(program, inputs, rulebook, mode);
        return interpret_with_random_roundings(program, inputs, rulebook, mode, *random);
    });
}

} // namespace scalide

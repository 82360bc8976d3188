#pragma once
#include "interpret/interpret.h"
#include "rulebook/policy.h"
#include "support/golden.h"
#include <functional>
#include <random>

namespace scalide::test {

/// The rules of the source tree.
const Rulebook &rules();

/// An array of the golden data or of a run; with a scale, its value is data * scale.
struct Tensor {
    Array data;
    std::optional<double> scale;

    std::vector<double> values() const;
};

/// Reads the array that a descriptor of the index names.
Tensor read_tensor(const GoldenSuite &suite, const nlohmann::json &descriptor);
std::vector<Tensor> read_tensors(const GoldenSuite &suite, const nlohmann::json &descriptors);

/// Returns a policy with strategy l2 and the rounding of a case. Every node is rounded where it stands, as JAX does.
Policy policy_of(const nlohmann::json &config);

/// What the program means: its value on full values in f64, for cases where upstream raises and the index has no other, and in Array::error
/// how far each element may be off where every value is rounded to its dtype (support/rounding_errors), inputs by 2 ulp where one is
/// scaled: data are brought to another scale, a scale is rounded. With `random` the value is that of such roundings, drawn.
std::vector<Tensor> meaning(const Program &program, const std::vector<Tensor> &inputs, std::mt19937 *random = nullptr);

/// with_drawn_errors of support/rounding_errors/monte_carlo.h, of what means something.
std::vector<Tensor> with_drawn_errors(const std::function<std::vector<Tensor>(std::mt19937 *random)> &run);

/// Returns a program after the passes up to base operators, without fusion.
class ScaledProgram {
public:
    /// Arguments and results are scaled if their descriptors are.
    ScaledProgram(Program source, const nlohmann::json &inputs, const nlohmann::json &outputs, const Policy &policy);

    /// Runs the interpreter in mode `stored`.
    std::vector<Tensor> run(const std::vector<Tensor> &inputs) const;

private:
    Program program_;
    std::vector<bool> scaled_results_;
};

} // namespace scalide::test

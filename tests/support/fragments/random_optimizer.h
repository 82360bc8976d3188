#pragma once
#include "interpret/interpret.h"
#include <map>

namespace scalide {

/// A training step, and the first values of its states by name.
struct DrawnStep {
    Program program;
    std::map<std::string, Array> states;
};

/// Returns a random training step: a network with one to three layers, a loss scaler, a clip and an optimizer of the DSL. Its inputs are
/// `x`, f32[batch, 6], and `target`, f32[batch, 1]; its result is `loss`.
DrawnStep random_optimizer_step(unsigned seed, int64_t batch);

} // namespace scalide

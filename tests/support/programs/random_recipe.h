#pragma once
#include "ir/program.h"
#include <random>
#include <string>

namespace scalide {

/// Returns the text of a policy with state: delayed scales by an amax history of 1 to 20 runs or a running amax, stochastic rounding by a
/// step number, or several of them. Formats, margins, roundings, masks and settings are drawn too. All its rules are optional. Nodes need
/// scopes (with_scopes).
std::string random_recipe(std::mt19937 &random);

/// Gives each node without a scope one of a few scopes. Neighbouring nodes often share it.
Program with_scopes(Program program, std::mt19937 &random);

/// Returns a training step: random_program with the gradients of all its arguments. The inout arguments `w` and `v` are moved against
/// theirs. All nodes have scopes.
Program random_training_step(std::mt19937 &random, int count);

} // namespace scalide

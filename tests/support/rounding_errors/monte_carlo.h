#pragma once
#include "interpret/interpret.h"
#include <functional>
#include <random>

namespace scalide {

/// Monte Carlo arithmetic (Parker, Pierce, Eggert, "Monte Carlo arithmetic: how to gamble with floating point and win", 2000): every result
/// of a node is off by a random part of its own roundings (roundings.h), and every input by one of its error. How far results of such runs
/// are apart is what roundings make of them, with errors of one origin taken together; what jumps is open where some run jumps.
std::vector<Array> interpret_with_random_roundings(const Program &program, std::vector<Array> inputs, const Rulebook &rulebook, Mode mode,
                                                   std::mt19937 &random);

/// What `run` gives without random roundings. Its errors are four deviations of 32 runs with some: less than bounds (running_error.h)
/// where values pass through many operators. A value near the middle between two f16 numbers is rounded to the other one in few runs, so
/// fewer runs may not meet it. Four deviations leave room for results that no normal distribution describes, as the drawn roundings, of up
/// to 2 ulp, are several times those of most nodes.
std::vector<Array> with_drawn_errors(const std::function<std::vector<Array>(std::mt19937 *random)> &run);

/// Does the same for a program.
std::vector<Array> interpret_with_drawn_errors(const Program &program, const std::vector<Array> &inputs, const Rulebook &rulebook,
                                               Mode mode);

} // namespace scalide

#pragma once
#include "frontend/generator.h"
#include "interpret/interpret.h"

namespace scalide {

/// A program that a function of a test describes with the DSL, and the values of its states. It runs in the interpreter, in mode
/// `stored`. The function declares inputs, states and outputs as local variables.
class FragmentRun {
public:
    /// Traces the function. States begin with the values of their initializers, and otherwise with zeros.
    explicit FragmentRun(std::function<void()> body);

    /// Runs the program once. Returns the outputs by name, and updates the states.
    std::map<std::string, Array> step(const std::map<std::string, Array> &inputs);

    /// The states by name, after the last step.
    std::map<std::string, Array> states;
    const Program &program() const { return program_; }

private:
    Program program_;
};

/// Returns an array of one element.
Array scalar_array(double value, Dtype dtype = Dtype::f32);

} // namespace scalide

#pragma once
#include <map>
#include <memory>
#include <scalide/scalide.h>
#include <string>
#include <vector>

using Context = std::unique_ptr<scalide_context, void (*)(scalide_context *)>;
using Binding = std::unique_ptr<scalide_binding, void (*)(scalide_binding *)>;
// For programs of this scalide_device. Throws std::runtime_error in the runtime's words: what is missing, such as a card.
Context make_context(int threads, int device);
// Throws std::runtime_error with the context's message.
void check(scalide_status status, const scalide_context *context);

// Memory that the kernels of a context read and write: the CPU's or a device's.
class Memory {
public:
    Memory(scalide_context *context, size_t bytes);
    void set(const void *from);
    void get(void *to) const;
    void *at() const { return block_.get(); }
    size_t bytes() const { return bytes_; }

private:
    struct Release {
        scalide_context *context;
        void operator()(void *memory) const { scalide_release(context, memory); }
    };

    scalide_context *context_;
    size_t bytes_;
    std::unique_ptr<void, Release> block_;
};

// The state of one model: an array in the dtype that its generated library asks for.
class Parameter {
public:
    Parameter(scalide_context *context, const scalide_argument_info &info, const std::vector<int64_t> &shape);

    // A scaled parameter gets the power-of-two scale that brings its largest value into [1, 2).
    void set(const std::vector<float> &values);
    std::vector<float> values() const;
    float scale() const;
    size_t bytes() const { return data_.bytes() + (info.scaled ? scale_.bytes() : 0); }
    scalide_array array() const;

    scalide_argument_info info;
    std::vector<int64_t> shape;

private:
    Memory data_, scale_;
};

// How the codes of the 8-bit tensors of one step were used, and the scale of every scaled tensor.
struct StepTrace {
    struct Codes {
        size_t count = 0, zero = 0, underflowed = 0, subnormal = 0, largest = 0;
    };
    std::map<std::string, Codes> codes;
    std::map<std::string, double> scales;
    std::map<std::string, size_t> nonzero; // elements of the tensors seen so far, as they were first
};

// A training step for one batch size: arrays and a binding of a generated program to them.
class Trainer {
public:
    Trainer(scalide_context *context, const scalide_program *program, std::vector<Parameter> &parameters, int batch, int pixels);

    // One step on the batch in `images` and `labels`; returns its mean loss.
    float step(float rate, float loss_factor);
    StepTrace traced_step(float rate, float loss_factor);

    std::vector<float> images;
    std::vector<int32_t> labels;

private:
    void copy_in(float rate, float loss_factor);
    void add_policy_state(const scalide_program *program, std::vector<scalide_array> &arrays);

    scalide_context *context_;
    std::vector<Parameter> &parameters_;
    Memory images_, labels_, rate_, loss_factor_, loss_;
    std::vector<Memory> policy_state_; // what the numerics of the library keep from step to step
    Binding binding_;
};

// The state that a training program asks for, with weights from a normal distribution of standard deviation 1/sqrt(inputs), biases 0.
std::vector<Parameter> make_parameters(scalide_context *context, const scalide_program *program, const std::vector<int64_t> &widths,
                                       unsigned seed);

#pragma once
#include <map>
#include <memory>
#include <new>
#include <scalide/scalide.h>
#include <string>
#include <vector>

// Memory as inout arguments have to have it: aligned to a cache line.
template<typename T>
struct AlignedAllocator {
    using value_type = T;
    AlignedAllocator() = default;
    template<typename U>
    AlignedAllocator(const AlignedAllocator<U> &) {}
    T *allocate(size_t count) { return static_cast<T *>(::operator new(count * sizeof(T), std::align_val_t(64))); }
    void deallocate(T *memory, size_t) { ::operator delete(memory, std::align_val_t(64)); }
    bool operator==(const AlignedAllocator &) const { return true; }
};

// The state of one model: arrays in the dtypes that its generated library asks for.
struct Parameter {
    std::string name;
    scalide_argument_info info{};
    std::vector<int64_t> shape;
    std::vector<unsigned char, AlignedAllocator<unsigned char>> data;
    float scale = 1;

    // A scaled parameter gets the power-of-two scale that brings its largest value into [1, 2).
    void set(const std::vector<float> &values);
    std::vector<float> values() const;
    size_t bytes() const { return data.size() + (info.scaled ? sizeof scale : 0); }
    scalide_array array() { return scalide_dense_array(data.data(), info.scaled ? &scale : nullptr, info.dtype, info.rank, shape.data()); }
};

using Context = std::unique_ptr<scalide_context, void (*)(scalide_context *)>;
using Binding = std::unique_ptr<scalide_binding, void (*)(scalide_binding *)>;
Context make_context(int threads);
// Throws std::runtime_error with the context's message.
void check(scalide_status status, const scalide_context *context);

// How the codes of the 8-bit tensors of one step were used, and the scale of every scaled tensor.
struct StepTrace {
    struct Codes {
        size_t count = 0, zero = 0, underflowed = 0, subnormal = 0, largest = 0;
    };
    std::map<std::string, Codes> codes;
    std::map<std::string, double> scales;
    std::map<std::string, size_t> nonzero; // elements of the f32 and f16 tensors seen so far
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
    scalide_context *context_;
    std::vector<Parameter> &parameters_;
    float rate_ = 0, loss_factor_ = 1, loss_ = 0;
    Binding binding_;
};

// The state that a training program asks for, with weights from a normal distribution of standard deviation 1/sqrt(inputs), biases 0.
std::vector<Parameter> make_parameters(const scalide_program *program, const std::vector<int64_t> &widths, unsigned seed);

#pragma once
#include "measuring.h"
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <scalide/plan.h>
#include <string>
#include <vector>

// The arrays of a program of a device, and the comparison of its results with those of the same program on the CPU.
namespace scalide::measuring {

[[noreturn]] inline void fail(const std::string &message) {
    std::fprintf(stderr, "run_on_device: %s\n", message.c_str());
    std::exit(1);
}

inline scalide_context *context_of(int32_t device) {
    scalide_options options{};
    options.struct_size = sizeof options;
    options.device = device;
    char message[1024] = "";
    options.message = message;
    options.message_size = sizeof message;
    scalide_context *context = nullptr;
    if (scalide_context_create(&options, &context) != SCALIDE_OK) fail(message);
    return context;
}

inline void check(const scalide_context *context, scalide_status status) {
    if (status != SCALIDE_OK) fail(scalide_message(context));
}

inline const scalide_program *load(scalide_context *context, const char *file, const char *name) {
    scalide_library *library = nullptr;
    check(context, scalide_load(context, file, &library));
    const scalide_program *program = scalide_library_program(context, library, name);
    if (!program) fail(scalide_message(context));
    return program;
}

/// Of a buffer without symbols.
inline std::vector<int64_t> shape_of(const scalide_buffer &buffer) {
    std::vector<int64_t> shape;
    for (int32_t axis = 0; axis < buffer.rank; axis++) {
        if (buffer.shape[axis].count > 0 && buffer.shape[axis].terms[0].symbol[0] >= 0) fail("the program's extents must be numbers");
        shape.push_back(buffer.shape[axis].count > 0 ? buffer.shape[axis].terms[0].coefficient : 0);
    }
    return shape;
}

/// The program's arrays in the memory of a context: small random numbers, the same for each device. What a run only writes is all ones,
/// which is NaN in every float.
class Arguments {
public:
    /// `nonnegative`: the argument whose numbers have no sign; may be NULL.
    Arguments(scalide_context *context, const scalide_program *program, const char *nonnegative) : context_(context) {
        std::mt19937 random(1);
        for (int32_t i = 0; i < program->argument_count; i++) {
            const scalide_argument &argument = program->arguments[i];
            const scalide_buffer &buffer = program->buffers[argument.data_buffer];
            const std::vector<int64_t> shape = shape_of(buffer);
            size_t count = 1;
            for (const int64_t extent : shape) count *= static_cast<size_t>(extent);
            const size_t width = scalide_dtype_size(buffer.dtype);
            std::vector<unsigned char> values(count * width, 0xff);
            const bool is_positive = nonnegative && std::string(nonnegative) == argument.name;
            if (argument.role != SCALIDE_OUTPUT) fill(values.data(), buffer.dtype, count, random);
            for (size_t k = width - 1; is_positive && k < values.size(); k += width) values[k] &= 0x7f;
            bytes_ += values.size() * (argument.role == SCALIDE_INOUT ? 2 : 1);
            const float one = 1;
            float *scale = argument.scale_buffer >= 0 ? static_cast<float *>(copy(&one, sizeof one)) : nullptr;
            arrays_.push_back(scalide_dense_array(copy(values.data(), values.size()), scale, buffer.dtype, buffer.rank, shape.data()));
            counts_.push_back(argument.role == SCALIDE_INPUT || argument.role == SCALIDE_CONSTANT ? 0 : count);
        }
    }
    Arguments(const Arguments &) = delete;
    Arguments &operator=(const Arguments &) = delete;
    ~Arguments() {
        for (void *memory : taken_) scalide_release(context_, memory);
    }

    const std::vector<scalide_array> &arrays() const { return arrays_; }
    size_t bytes() const { return bytes_; }
    /// Returns the values of an argument that a run writes, and nothing for another.
    std::vector<float> results(size_t index) const {
        const scalide_array &array = arrays_[index];
        std::vector<unsigned char> codes(counts_[index] * scalide_dtype_size(array.dtype));
        std::vector<float> values(counts_[index]);
        if (values.empty()) return values;
        check(context_, scalide_copy_out(context_, codes.data(), array.data, codes.size()));
        float scale = 1;
        if (array.scale) check(context_, scalide_copy_out(context_, &scale, array.scale, sizeof scale));
        const auto count = static_cast<int64_t>(values.size());
        const scalide_array from = scalide_dense_array(codes.data(), &scale, array.dtype, 1, &count);
        scalide_array to = scalide_dense_array(values.data(), nullptr, SCALIDE_F32, 1, &count);
        check(context_, scalide_convert(context_, &from, &to));
        return values;
    }

private:
    void *copy(const void *from, size_t bytes) {
        void *memory = nullptr;
        check(context_, scalide_allocate(context_, std::max<size_t>(bytes, 4), &memory));
        taken_.push_back(memory);
        if (bytes > 0) check(context_, scalide_copy_in(context_, memory, from, bytes));
        return memory;
    }

    scalide_context *context_;
    std::vector<scalide_array> arrays_;
    std::vector<size_t> counts_; ///< elements that a run writes
    std::vector<void *> taken_;
    size_t bytes_ = 0;
};

/// Returns the largest error of an element, divided by its expected magnitude plus the root of the mean square of its array. Infinite for a
/// NaN or an infinity that is not expected, or is missing.
inline double largest_error(const std::vector<float> &got, const std::vector<float> &expected) {
    double squares = 0, largest = 0;
    for (const float value : expected) squares += std::isfinite(value) ? double(value) * value : 0;
    const double mean = std::sqrt(squares / static_cast<double>(std::max<size_t>(expected.size(), 1)));
    for (size_t i = 0; i < got.size(); i++) {
        if (got[i] == expected[i] || (std::isnan(got[i]) && std::isnan(expected[i]))) continue;
        const double error = std::fabs(double(got[i]) - expected[i]) / (std::fabs(double(expected[i])) + mean);
        if (!(error <= largest)) largest = std::isnan(error) ? std::numeric_limits<double>::infinity() : error;
    }
    return largest;
}

/// Runs the same program for the CPU once on the same numbers, and returns the largest error of what `arguments` have after one run.
inline double error_beside_cpu(const Arguments &arguments, const char *file, const char *name, const char *nonnegative) {
    scalide_context *context = context_of(SCALIDE_CPU);
    const scalide_program *program = load(context, file, name);
    const Arguments expected(context, program, nonnegative);
    scalide_binding *binding = nullptr;
    check(context, scalide_bind(context, program, expected.arrays().data(), expected.arrays().size(), &binding));
    check(context, scalide_run(binding));
    scalide_binding_destroy(binding);
    double largest = 0;
    for (size_t i = 0; i < expected.arrays().size(); i++)
        largest = std::max(largest, largest_error(arguments.results(i), expected.results(i)));
    return largest;
}

} // namespace scalide::measuring

#pragma once
#include "sample_program.h"
#include "scalide/scalide.h"
#include <array>
#include <gtest/gtest.h>
#include <vector>

namespace scalide::test {

/// A context with this many threads, destroyed at the end of the test.
struct Context {
    scalide_context *handle = nullptr;

    explicit Context(int32_t threads = 2, uint64_t scratch_bytes = 0) {
        scalide_options options = {};
        options.struct_size = sizeof(options);
        options.threads = threads;
        options.scratch_bytes = scratch_bytes;
        EXPECT_EQ(scalide_context_create(&options, &handle), SCALIDE_OK);
    }
    Context(const Context &) = delete;
    Context &operator=(const Context &) = delete;
    ~Context() { scalide_context_destroy(handle); }
};

/// A binding, destroyed at the end of the test.
struct Bound {
    scalide_binding *handle = nullptr;
    Bound() = default;
    Bound(const Bound &) = delete;
    Bound &operator=(const Bound &) = delete;
    ~Bound() { scalide_binding_destroy(handle); }
};

/// The arrays of the sample program with batch size `b`, and its expected results.
struct Sample {
    std::vector<float> x, y;
    alignas(64) std::array<float, 4> w = {1, 2, 3, 4};
    float w_scale = 0.5f, mean = 0;
    std::array<scalide_array, 4> arrays;

    explicit Sample(int64_t b = 6) : x(static_cast<size_t>(4 * b)), y(static_cast<size_t>(b)) {
        for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 7);
        const int64_t extents[] = {b, 4};
        arrays = {scalide_dense_array(x.data(), nullptr, SCALIDE_F32, 2, extents),
                  scalide_dense_array(w.data(), &w_scale, SCALIDE_F32, 1, &extents[1]),
                  scalide_dense_array(y.data(), nullptr, SCALIDE_F32, 1, extents),
                  scalide_dense_array(&mean, nullptr, SCALIDE_F32, 0, nullptr)};
    }
    Sample(const Sample &) = delete;
    Sample &operator=(const Sample &) = delete;

    float expected_y(size_t row) const {
        float sum = 0;
        for (size_t i = 0; i < 4; ++i) sum += x[4 * row + i] * w[i];
        return sum * w_scale;
    }
};

inline scalide_status bind(Context &context, const scalide_program *program, Sample &sample, scalide_binding **binding) {
    return scalide_bind(context.handle, program, sample.arrays.data(), sample.arrays.size(), binding);
}

} // namespace scalide::test

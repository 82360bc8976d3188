#pragma once
#include "fixture.h"
#include "weighted_plan.h"

namespace scalide::test {

/// The arrays of the program of WeightedPlan.
struct Weighted {
    std::vector<float> x, w, y;
    std::array<scalide_array, 3> arrays;

    explicit Weighted(float weight, int64_t b = 5) : x(static_cast<size_t>(b), 1.0f), w(4, weight), y(static_cast<size_t>(b)) {
        const int64_t four = 4;
        arrays = {scalide_dense_array(x.data(), nullptr, SCALIDE_F32, 1, &b), scalide_dense_array(w.data(), nullptr, SCALIDE_F32, 1, &four),
                  scalide_dense_array(y.data(), nullptr, SCALIDE_F32, 1, &b)};
    }
    Weighted(const Weighted &) = delete;
    Weighted &operator=(const Weighted &) = delete;

    scalide_constants *prepare(Context &context, const WeightedPlan &plan) const {
        scalide_constants *constants = nullptr;
        EXPECT_EQ(scalide_prepare(context.handle, &plan.main, arrays.data(), 3, &constants), SCALIDE_OK) << scalide_message(context.handle);
        return constants;
    }
};

} // namespace scalide::test

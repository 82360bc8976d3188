#pragma once
#include <cstddef>
#include <string_view>

namespace scalide::test {

/// A function of all elements in f64, vectorized (glibc's libmvec, 4 ulp of f64): 2^32 arguments take seconds instead of minutes.
struct ArrayReference {
    std::string_view name;
    void (*compute)(const float *x, double *y, size_t size);
};

/// Returns nullptr if there is no function with this name.
const ArrayReference *find_array_reference(std::string_view name);

/// Counts the f32 in `got` that are further than 2 units in the last place from `reference` (defined in support/ulp.h).
size_t count_beyond_2_ulp(const float *got, const double *reference, size_t size);

} // namespace scalide::test

#include "exhaustive/references.h"
#include "support/ulp.h"

namespace scalide::test {
namespace {

/// True for what is certainly within 2 ulp, in operations that vectorize; the rest is looked at again. An ulp is more than 2^-24 of the
/// reference.
bool is_near(float got, double reference) {
    constexpr double limit = 0x1p128;
    const double value = got < -limit ? -limit : got > limit ? limit : got; // NaN stays NaN
    const double right = reference < -limit ? -limit : reference > limit ? limit : reference;
    const bool one_sign = std::copysign(1.0, value) == std::copysign(1.0, right);
    const bool both_nan = (got != got) & (reference != reference);
    return both_nan | ((std::fabs(value - right) <= std::fabs(right) * 0x1p-23) & one_sign);
}

} // namespace

size_t count_beyond_2_ulp(const float *got, const double *reference, size_t size) {
    constexpr size_t block = 256;
    size_t count = 0;
    for (size_t begin = 0; begin < size; begin += block) {
        const size_t end = std::min(begin + block, size);
        int64_t far = 0;
        for (size_t i = begin; i < end; i++) far |= is_near(got[i], reference[i]) ? 0 : 1;
        if (far == 0) continue;
        for (size_t i = begin; i < end; i++) count += !(ulp_distance(got[i], reference[i]) <= 2);
    }
    return count;
}

} // namespace scalide::test

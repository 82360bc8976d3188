#pragma once
#include "scaled_program.h"

namespace scalide::test {

/// How far two runs of one computation may be apart, in units in the last place of the dtype (`ulp` below): of the value, and of the
/// largest value of the array, which is what cancellation leaves behind.
struct Tolerance {
    double of_value, of_largest;
};

/// The distance of neighbours of `value` among what a tensor of that dtype and scale can hold. Below the normal numbers of f32 it is
/// the smallest of them: XLA flushes what is smaller to zero.
double ulp(const Tensor &like, double value);

/// What differs first, "" when nothing does. Integers and bools must be equal; NaN equals NaN. Where upstream gives infinity or zero
/// because its data or scale left the range of f32, a value that no f32 can hold is as good. Saturated values in narrow formats are
/// deviations.
std::string difference(const Tensor &got, const Tensor &expected, Tolerance tolerance);

/// What `like` holds of exact values: they are rounded to its dtype at its scale, saturating; to integers, towards zero.
Tensor as_held_by(const Tensor &like, const Tensor &exact);

/// The cases of a suite where Scalide gives the right value and upstream does not: `deviations/<suite>.txt`, a case and a reason a line.
/// Everything else must agree with upstream, and every line must be needed.
class Deviations {
public:
    /// Fails the running test at a line whose case is not in the index.
    Deviations(const std::string &suite, const nlohmann::json &index);

    /// Fails the running test unless the case is judged as its line, or the lack of one, says. `disagreement`: how it differs from
    /// upstream, `mistake`: how it differs from the right value; "" for not at all.
    void judge(const nlohmann::json &entry, const std::string &disagreement, const std::string &mistake) const;

    size_t count() const { return reasons_.size(); }

private:
    std::map<std::string, std::string> reasons_; ///< by case
};

} // namespace scalide::test

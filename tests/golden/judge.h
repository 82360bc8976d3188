#pragma once
#include "scaled_program.h"

namespace scalide::test {

/// The distance of neighbours of `value` among what a tensor of that dtype and scale can hold. Below the normal numbers of f32 it is
/// the smallest of them: XLA flushes what is smaller to zero.
double ulp(const Tensor &like, double value);

/// What differs first, "" when nothing does. An element may be off by `ulps` units in the last place of what holds it, as scaled data are
/// rounded in places of their own, and by the error of the meaning (scaled_program.h). Integers and bools must be equal; NaN equals NaN.
/// Where upstream gives infinity or zero because its data or scale left the range of f32, a value that no f32 can hold is as good.
/// Saturated values in narrow formats are deviations.
std::string difference(const Tensor &got, const Tensor &expected, const Tensor &meaning, double ulps);

/// Rounds exact values to the dtype of `like` at its scale. Values too large saturate. Integers are rounded towards zero.
Tensor as_held_by(const Tensor &like, const Tensor &exact);

/// The cases of a suite where Scalide gives the right value and upstream does not. They stand in `deviations/<suite>.txt`, one case and its
/// reason per line. All other cases must agree with upstream, and every line must be needed.
class Deviations {
public:
    /// Fails the running test at a line whose case is not in the index.
    Deviations(const std::string &suite, const nlohmann::json &index);

    /// Fails the running test if the case disagrees with its line, or with the lack of one. `disagreement` says how it differs from
    /// upstream, and `mistake` how it differs from the right value. "" means no difference.
    void judge(const nlohmann::json &entry, const std::string &disagreement, const std::string &mistake) const;

    size_t count() const { return reasons_.size(); }

private:
    std::map<std::string, std::string> reasons_; ///< by case
};

} // namespace scalide::test

#pragma once
#include "interpret/interpret.h"
#include "transforms/analysis/directions.h"

namespace scalide {

/// The effect of one conversion to a low-precision format on the elements of a tensor.
struct RoundingCount {
    std::string tensor;
    Dtype format;
    std::string scope = {};                ///< of the conversion
    Direction direction = Direction::none; ///< of the conversion
    size_t elements = 0;
    size_t zeros = 0;      ///< results that are 0 although the number is not
    size_t saturated = 0;  ///< numbers too large for the format, even after rounding; of infinities, those that become finite
    size_t subnormals = 0; ///< results below the smallest normal number
    Location source = {};
    int64_t steps = 0;       ///< in a loop: how often the conversion ran; the counts are of all steps. 0: in no loop
    int64_t first_step = -1; ///< in a loop: the first step, from 0, with a zero or a saturated element; -1: none
    bool operator==(const RoundingCount &other) const {
        return std::tie(tensor, format, scope, direction, elements, zeros, saturated, subnormals, source.line) ==
               std::tie(other.tensor, other.format, other.scope, other.direction, other.elements, other.zeros, other.saturated,
                        other.subnormals, other.source.line);
    }
};

/// The effect of a run on the elements of an argument that is updated in place.
struct StateCount {
    std::string tensor;
    Dtype format;
    std::string scope = {};                ///< of the operator that computes the new value
    Direction direction = Direction::none; ///< of this operator
    size_t elements = 0;
    size_t unmoved = 0;      ///< elements that keep their old value although the exact new value (in f64) differs
    size_t zero_updates = 0; ///< elements whose exact new value is the old value: the update is 0, such as a gradient that was rounded to 0
    Location source = {};
};

/// A scale that does not fit the tensor.
struct ScaleMisfit {
    std::string tensor;
    double scale = 0;
    double amax = 0; ///< largest finite magnitude of the tensor
    std::string problem;
};

struct RoundingCheck {
    std::vector<RoundingCount> roundings; ///< in the order of the program, without duplicates
    std::vector<StateCount> states;       ///< in the order of the results; without the state of a policy
    std::vector<ScaleMisfit> misfits;     ///< scaled arguments first, then conversions in the order of the program
    std::vector<std::string> uncompared;  ///< arguments whose new values come from a loop or a branch, so that no exact value is known
};

/// Interprets a program of base operators, as place_stores returns it, in mode `stored` and counts. Returns the outputs.
std::vector<Array> interpret_and_check(const Program &program, const std::vector<Array> &inputs, const Rulebook &rulebook,
                                       RoundingCheck &check);

/// Returns the counts as a table or as JSON.
std::string to_text(const RoundingCheck &check);
std::string to_json(const RoundingCheck &check);

} // namespace scalide

#pragma once
#include "interpret/interpret.h"
#include "ir/program.h"

namespace scalide {

/// What one conversion to a narrow format did to the elements of a tensor.
struct RoundingCount {
    std::string tensor;
    Dtype format;
    size_t elements = 0;
    size_t zeros = 0;      ///< made of numbers that are not zero
    size_t saturated = 0;  ///< finite numbers beyond the largest of the format
    size_t subnormals = 0; ///< results below the smallest normal number
    Location source = {};
    bool operator==(const RoundingCount &other) const {
        return std::tie(tensor, format, elements, zeros, saturated, subnormals, source.line) ==
               std::tie(other.tensor, other.format, other.elements, other.zeros, other.saturated, other.subnormals, other.source.line);
    }
};

/// What became of the elements of an argument that is overwritten.
struct StateCount {
    std::string tensor;
    Dtype format;
    size_t elements = 0;
    size_t unmoved = 0; ///< have their old value, though the new one, computed in f64 of the same operands, is another
    Location source = {};
};

struct RoundingCheck {
    std::vector<RoundingCount> roundings; ///< in the order of the program; equal ones once
    std::vector<StateCount> states;       ///< in the order of the results
};

/// Interprets a program of base operators (as place_stores leaves it) in mode `stored` and counts. Gives the outputs.
std::vector<Array> interpret_and_check(const Program &program, const std::vector<Array> &inputs, const Rulebook &rulebook,
                                       RoundingCheck &check);

/// The counts as a table, or as JSON.
std::string to_text(const RoundingCheck &check);
std::string to_json(const RoundingCheck &check);

} // namespace scalide

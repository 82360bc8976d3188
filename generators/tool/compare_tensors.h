#pragma once
#include "tool/policy_run.h"

namespace scalide {

/// How far an array is from its reference. Both infinite with the same sign, or both NaN, counts as equal.
struct ArrayDifference {
    double relative = 0;          ///< norm of the difference / norm of the reference; infinity if the arrays differ in an infinity or a NaN
    double largest = 0;           ///< the largest difference of two elements; infinity if one of them is infinite or NaN
    size_t element = 0;           ///< its number
    double before = 0, after = 0; ///< this element in the reference and in the array
    double amax_before = 0, amax_after = 0; ///< the largest magnitude; infinite or NaN if an element is
    size_t zeros = 0;                       ///< elements that became 0
    size_t non_finite = 0;                  ///< elements that differ and are infinite or NaN in an array
    bool is_equal = true;                   ///< all elements are
    /// Returns the signal-to-quantization-noise ratio: -20 log10(relative).
    double sqnr() const;
};
ArrayDifference difference(const std::vector<double> &reference, const std::vector<double> &numbers);

/// One row: a tensor, or a rounded copy of it, under two policies.
struct ComparedTensor {
    size_t tensor = 0; ///< number of the SourceTensor
    bool is_copy = false;
    Dtype before = Dtype::f32, after = Dtype::f32; ///< formats
    ArrayDifference difference;
    std::string scope = {}; ///< of the operator; of a copy of an argument, of the operator that rounds it
    Location source = {};
    std::vector<int64_t> index; ///< of the element with the largest difference
    size_t elements = 0, saturated = 0;
    double inputs = 0;    ///< the largest relative error of the rows from which the second policy computes it
    int worst_input = -1; ///< the row with this error; -1: all inputs are equal
    double rounding = 0;  ///< the relative error of the rounding alone: a copy and the tensor itself under the second policy
    double limit = 0;
    Location rule = {};
    std::string why = {};
    bool is_beyond() const { return !(difference.relative <= limit); }
};

/// The comparison of two policies on one input.
struct Comparison {
    std::vector<SourceTensor> tensors;
    std::vector<ComparedTensor> rows;    ///< in the order of the program
    std::vector<std::string> uncompared; ///< tensors that do not exist on their own under a policy, because an operator was merged
    bool has_loops = false;              ///< tensors of loops are compared in the last step

    // Rows are searched only where is_shown is true. -1: none.
    int first_different(const std::vector<bool> &is_shown) const;
    int first_beyond(const std::vector<bool> &is_shown) const;
    /// Returns the first row that has an infinity or a NaN under both policies.
    int first_non_finite(const std::vector<bool> &is_shown) const;
    /// Returns the row with the largest error of its rounding alone, in the forward or in the backward pass.
    int largest_rounding(const std::vector<bool> &is_shown, Role role) const;
};

/// Compares two runs. Without `limit`, the limit of a row is four times the unit roundoff of the coarsest format on the way to it.
Comparison compare_runs(const PolicyRun &reference, const PolicyRun &tested, const SourceTensors &tensors, std::optional<double> limit);

/// Returns the comparison as text or JSON. `names` are the two policies.
std::string to_text(const Comparison &comparison, const std::vector<bool> &is_shown, const std::vector<std::string> &names);
std::string to_json(const Comparison &comparison, const std::vector<bool> &is_shown, const std::vector<std::string> &names);
/// Returns the sentences that say which tensor is the first beyond its limit, and why.
std::string verdict_of(const Comparison &comparison, const std::vector<bool> &is_shown);

} // namespace scalide

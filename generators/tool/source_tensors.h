#pragma once
#include "tool/recorded_run.h"

namespace scalide {

/// A tensor of the user's program. A value and its reshaped or transposed copy are one tensor.
struct SourceTensor {
    std::vector<std::string> names; ///< the first is the first in the program
    ValueRef first;
    std::vector<int64_t> shape;
    std::string op, scope; ///< of the node that computes it; empty: an argument
    Role role = Role::primal;
    Location location = {};
    std::string result = {}; ///< the name of a result of the program; empty: none
    bool is_update = false;  ///< the result is the new value of an argument

    /// Returns the name that the user knows: a result has the name of the result.
    const std::string &shown() const { return result.empty() ? names[0] : result; }
};

/// Where the numbers of an array are in a tensor.
struct TensorPlace {
    size_t tensor = 0;
    std::vector<uint32_t> order = {}; ///< element i of the tensor is element order[i] of the array; empty: the order is the same
};

/// The tensors of a program, which are found again by their numbers in exact arithmetic, because passes rename, reshape and share values.
/// So no value can get the name of another tensor, unless both are equal for all inputs.
class SourceTensors {
public:
    /// `exact` is a run on inputs without equal elements (distinct_inputs).
    SourceTensors(const ValueGraph &graph, const RecordedRun &exact);

    const std::vector<SourceTensor> &all() const { return tensors_; }
    /// Returns the tensor that has these numbers. Of several, prefers the one with this name, then one in this scope.
    std::optional<TensorPlace> find(const std::vector<double> &numbers, const std::string &name, const std::string &scope) const;

private:
    struct Sorted {
        std::vector<double> numbers;
        std::vector<uint32_t> order;
    };
    void add(const ValueRef &value, const ValueGraph &graph, const Array &array);
    const Sorted &sorted(size_t tensor) const;
    std::optional<TensorPlace> place_in(size_t tensor, const std::vector<double> &numbers, std::optional<Sorted> &sorted_numbers) const;

    std::vector<SourceTensor> tensors_;
    std::vector<std::vector<double>> numbers_;                ///< by tensor
    std::multimap<std::pair<size_t, double>, size_t> by_sum_; ///< by number of elements and sum of squares
    mutable std::map<size_t, Sorted> sorted_;
};

/// Returns different positive numbers between half the magnitude and one and a half times the magnitude, which depend on the name.
std::vector<double> distinct_numbers(const std::string &name, size_t count, double magnitude);

/// Returns arrays with the dtypes and shapes of `inputs` and about their magnitudes and signs, but with other elements, which differ from
/// each other and are finite. Integers and bools stay. Each array has random numbers of its own, from its name.
std::vector<Array> distinct_inputs(const Program &program, const std::vector<Array> &inputs);

} // namespace scalide

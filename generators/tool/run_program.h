#pragma once
#include "ir/program.h"
#include "tool/run_watch.h"
#include "transforms/analysis/directions.h"

namespace scalide {

/// What the program of a run says of the tensors of the run.
class RunProgram {
public:
    /// `program` has no calls.
    explicit RunProgram(const Program &program);

    /// A library that Python built cites lines of the program. If the program names other lines for its tensors, the log cites these.
    void cite_lines(RunLog &log) const;

    /// Returns for each tensor the position of its operator in the program; -1 for arguments, which exist before all operators. A tensor
    /// without a name has the position of its operator, if its scope has only one, else of the tensor before it.
    std::vector<int> positions(const RunLog &log) const;

    /// True for an argument of the program.
    bool is_argument(const LoggedTensor &tensor) const;
    /// True for an argument that the step updates.
    bool is_state(const LoggedTensor &tensor) const;
    /// True for a tensor that is 0 for all arguments, such as the first state of a loop.
    bool is_always_zero(const LoggedTensor &tensor) const;
    /// Returns the operator that computes the numbers of the tensor, with its place: "relu in hidden (model.py:7:8)". Empty: none, or it is
    /// not known.
    std::string producer_of(const LoggedTensor &tensor) const;
    /// Returns the name of this operator: "relu". Empty: none, or it is not known.
    std::string operator_of(const LoggedTensor &tensor) const;
    /// Returns the tensor that is the new value of a state, as the log names it; -1: none.
    int update_of(const LoggedTensor &state, const RunLog &log) const;

    /// Says which operators can be the reason for an infinity or a NaN in the tensor, if all tensors with an `amax` are finite. Empty:
    /// nothing is known.
    std::string reason_of(const LoggedTensor &tensor, const RunLog &log, const std::vector<float> &amax) const;
    /// Returns the largest magnitude that an update of this state can have, if no tensor is larger than `amax`. Infinity: it is not known.
    double largest_update(const LoggedTensor &state, const RunLog &log, const std::vector<float> &amax) const;

private:
    /// Returns c if the value is c * state: 1 for the state itself, the decay of a moving average.
    std::optional<double> factor_of(ValueId value, ValueId state) const;
    ValueId value_of(const LoggedTensor &tensor) const;
    int position_of(const LoggedTensor &tensor, int before) const;
    void add_names(const Program &region, int loop);
    std::string key_of(const Node &node) const;
    std::pair<int, ValueId> place_of_operator(const LoggedTensor &tensor) const;
    std::map<ValueId, double> magnitudes(const RunLog &log, const std::vector<float> &amax) const;

    const Program &program_;
    const Directions directions_;
    const std::vector<int> producers_;
    std::map<std::string, ValueId> values_;
    std::map<std::string, std::vector<std::pair<int, ValueId>>> by_operator_; ///< by operator, scope and direction: node, and result or -1
    std::map<std::string, int> loops_; ///< by name of a tensor in a loop: the node of the outermost loop
};

} // namespace scalide

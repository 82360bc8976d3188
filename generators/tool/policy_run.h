#pragma once
#include "rulebook/policy.h"
#include "tool/arrays.h"
#include "tool/source_tensors.h"
#include "transforms/numerics/numerics_report.h"

namespace scalide {

/// A program, a policy and the arrays of a file: what `scalide compare` runs.
struct PolicyInputs {
    const Program &program; ///< as the user wrote it
    const Rulebook &rulebook;
    const ArrayFile &arrays;

    /// Returns the argument of a program with the passes of a policy: the file's array in the format of the argument. A state of the policy
    /// that the file does not have gets its initial value.
    std::vector<Array> for_program(const Program &with_policy) const;
};

/// A program after the passes that decide what compiled kernels store. Its interpretation has the numbers of the kernels.
struct StoredProgram {
    Program source;   ///< before the policy, with the names and lines of the user
    Program assigned; ///< after the policy, with the names of its decisions
    Program program;
    std::vector<NumericsDecision> sites;
    std::vector<MatmulDecision> matmuls;
};
StoredProgram stored_program(const PolicyInputs &inputs, const Policy &policy);

/// A tensor as one policy stores it: as it is computed, or a rounded copy of it.
struct TensorForm {
    ValueRef value;
    Dtype format = Dtype::f32;
    std::vector<double> numbers = {}; ///< data * scale, in the order of the source tensor
    size_t saturated = 0;             ///< elements beyond the largest number of the format
    Location rule = {};               ///< the policy's rule that decides the format; no line: none
    std::string why = {};             ///< the key of the policy that decides the format, if no rule does
};

/// The run of a program under one policy, and which of its values are forms of which tensors.
class PolicyRun {
public:
    PolicyRun(const PolicyInputs &inputs, const Policy &policy);

    const StoredProgram &stored() const { return made_; }
    const std::vector<Array> &outputs() const { return run_->outputs(); }
    /// Finds the forms of tensors. `exact_inputs` has the arrays of the source program with distinct elements.
    void find_forms(const SourceTensors &tensors, const std::map<std::string, Array> &exact_inputs, const Rulebook &rulebook);

    /// Returns the forms of a tensor, in the order of the run: first the tensor itself, then rounded copies.
    const std::vector<TensorForm> &forms(size_t tensor) const { return forms_[tensor]; }
    /// Returns the tensor and the number of the form that a value holds.
    std::optional<std::pair<size_t, size_t>> form_of(const ValueRef &value) const;
    const ValueGraph &graph() const { return graph_; }
    /// Returns the values in the order of the run.
    const std::vector<ValueRef> &order() const { return run_->order(); }
    /// Returns the largest relative error of one rounding on the way to a value: that of its coarsest format.
    double unit_of(const ValueRef &value) const { return units_.at(value); }

private:
    struct Member {
        TensorPlace place;
        std::vector<double> numbers;
        size_t saturated = 0;
    };
    std::vector<Array> exact_arguments(const std::map<std::string, Array> &exact_inputs) const;
    std::optional<Member> direct(const ValueRef &value, const RecordedRun &exact, const SourceTensors &tensors) const;
    std::optional<Member> member(const ValueRef &value, const RecordedRun &exact, const SourceTensors &tensors) const;
    std::optional<Member> narrowed(const ValueRef &value, const RecordedRun &exact, const SourceTensors &tensors) const;
    std::map<ValueRef, double> units() const;
    std::optional<ValueRef> scale_of(const ValueRef &value) const;
    void add(const ValueRef &value, Member member, const SourceTensor &tensor);
    void explain(TensorForm &form, const SourceTensor &tensor) const;

    const StoredProgram made_;
    const ValueGraph graph_;
    const std::optional<Dtype> intermediates_;
    std::optional<RecordedRun> run_;
    std::vector<std::vector<TensorForm>> forms_;
    std::map<ValueRef, std::pair<size_t, size_t>> form_of_;
    std::map<ValueRef, double> units_;
};

/// Returns half the distance of neighbors of 1 in a format: the largest relative error of a rounding to nearest.
double unit_roundoff(Dtype dtype);

} // namespace scalide

#pragma once
#include "ir/dtype.h"
#include "transforms/library/matmul_form.h"
#include <functional>

namespace scalide {

/// A matmul and the arithmetic that a library does in the same call:
///   result = result_factor * t, rounded to its dtype
///   t      = factor * sum + addend_factor * addend + bias
///   amax   = max |t|
/// All values are in memory; -1: there is none. Factors are rank-0 f32. Operands may have scales (MatmulForm). Scales of rows may be
/// applied after the sum.
struct MatmulCall {
    MatmulForm form;
    ValueId factor = -1;
    ValueId bias = -1;   ///< a vector of n elements, added to each row
    ValueId addend = -1; ///< an array of the result's shape
    ValueId addend_factor = -1;
    ValueId result_factor = -1;
    ValueId amax = -1;
    ValueId result = -1;
    bool fast_accumulation = false;        ///< sums of f8 products may be less precise than f32
    bool tf32 = false;                     ///< f32 operands may be rounded to 11 significant bits
    std::optional<Overflow> overflow = {}; ///< of the conversion to the result's dtype; empty: the result is not converted
    std::vector<int> operand_nodes = {};   ///< nodes that multiply operands by their scales
    std::vector<int> nodes;                ///< the dot_general and the nodes after it, without those that only move or widen
};

/// Finds the calls of a program.
class MatmulCalls {
public:
    enum class Reshapes : uint8_t { end, pass };

    /// `is_stored`: true if a value is in memory. `reshapes`: whether a reshape of the result ends a call, or belongs to its nodes.
    MatmulCalls(const Program &program, std::function<bool(ValueId)> is_stored, Reshapes reshapes = Reshapes::end);

    /// Returns the possible calls of a dot_general, each one step longer than the one before: the matmul alone, then with the arithmetic
    /// after it. If the operands have scales, the same list with scales follows. Empty if the operands are no dense arrays.
    std::vector<MatmulCall> of(int dot) const;

    /// Returns the call with arrays that hold the operands' scales in the library's layout. Returns nothing if memory holds no such arrays.
    std::optional<MatmulCall> with_packed_scales(const MatmulCall &call) const;

private:
    std::optional<MatmulCall> extended(const MatmulCall &call) const;
    void add_calls(std::vector<MatmulCall> &calls, MatmulCall product) const;
    std::optional<MatmulCall> multiplied(const MatmulCall &call, int node) const;
    std::optional<MatmulCall> added(const MatmulCall &call, int node) const;
    std::optional<MatmulCall> narrowed(const MatmulCall &call) const;

    bool is_only_read_by(ValueId value, size_t readers) const;
    ValueId other_operand(int node, ValueId value) const;
    ValueId stored(ValueId value) const;
    ValueId scalar_of(ValueId value) const;
    enum class Side : uint8_t { rows, columns };
    ValueId vector_of(ValueId value, const Extent &elements, Side side) const;
    bool scale_rows(MatmulCall &call, ValueId value) const;
    int amax_of(int magnitude) const;

    const Program &program_;
    const std::function<bool(ValueId)> is_stored_;
    const Reshapes reshapes_;
    const std::vector<int> makers_;
    std::vector<std::vector<int>> readers_; ///< by value: the nodes that read it
    std::vector<bool> is_result_;           ///< by value
};

} // namespace scalide

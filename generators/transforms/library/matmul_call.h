#pragma once
#include "ir/dtype.h"
#include "transforms/library/matmul_form.h"
#include <functional>

namespace scalide {

/// A product and what a library does besides: result = result_factor * t, rounded to its dtype, where
/// t = factor * sum + addend_factor * addend + bias and amax = max |t|. All values are in memory; -1: there is none. Factors are rank-0
/// f32. Operands may have scales (MatmulForm); those of rows may stand behind the sum.
struct MatmulCall {
    MatmulForm form;
    ValueId factor = -1;
    ValueId bias = -1;   ///< a vector of n elements, added to each row
    ValueId addend = -1; ///< an array of the result's shape
    ValueId addend_factor = -1;
    ValueId result_factor = -1;
    ValueId amax = -1;
    ValueId result = -1;
    bool fast_accumulation = false;        ///< sums of f8 products need not be f32
    bool tf32 = false;                     ///< f32 operands need not have more than 11 bits
    std::optional<Overflow> overflow = {}; ///< of the conversion to the result's dtype; empty: it is not converted
    std::vector<int> operand_nodes = {};   ///< that multiply operands by their scales
    std::vector<int> nodes;                ///< of the program: the dot_general and what follows it, but nodes that only move or decode
};

/// Finds the calls of a program.
class MatmulCalls {
public:
    enum class Reshapes : uint8_t { end, pass };

    /// `is_stored`: whether a value is in memory. `reshapes`: whether those of results end a call, or stand among its nodes.
    MatmulCalls(const Program &program, std::function<bool(ValueId)> is_stored, Reshapes reshapes = Reshapes::end);

    /// What may be one call: the product alone, then with what follows it, one step after the other; then the same of scaled operands,
    /// where they are. Empty where a dot_general is no product of dense arrays.
    std::vector<MatmulCall> of(int dot) const;

    /// The same call with the arrays in memory that hold the scales of its operands as a library reads them; nothing where there are none.
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
    std::vector<std::vector<int>> readers_; ///< nodes, by value
    std::vector<bool> is_result_;           ///< by value
};

} // namespace scalide

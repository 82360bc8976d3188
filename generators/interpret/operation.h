#pragma once
#include "interpret/interpret.h"
#include <string_view>

namespace scalide {

/// One node that is about to run: a base operator on arrays.
struct Operation {
    std::string_view op;
    Attributes attributes; ///< no symbols
    std::vector<const Array *> operands;
    std::vector<Array> results; ///< dtype and shape are set, data is to be filled
    Mode mode = Mode::real;
    const Node *node = nullptr; ///< what it is of the program that runs, for those who look on

    const Array &operand(size_t number) const { return *operands[number]; }
    Array &result() { return results[0]; }
    /// A list of integers; empty when the attribute is absent.
    std::vector<int64_t> integers(const std::string &attribute) const;
};

/// Fills the results of an operation.
using Run = void (*)(Operation &);

/// How to run a base operator. Throws InternalError for a name that is none.
Run find_run(std::string_view op);

/// Elements of a shape.
int64_t element_count(const std::vector<int64_t> &shape);

/// What a computed element becomes in an array of this dtype: integers wrap around, bools are 0 or 1; in mode `stored` floats are rounded.
void store(Array &array, Mode mode);

// One file a family.
void run_elementwise(Operation &operation);
void run_convert(Operation &operation);
void run_bitcast(Operation &operation);
void run_reduce_precision(Operation &operation);
void run_broadcast(Operation &operation);
void run_reshape(Operation &operation);
void run_transpose(Operation &operation);
void run_rev(Operation &operation);
void run_slice(Operation &operation);
void run_pad(Operation &operation);
void run_concatenate(Operation &operation);
void run_constant(Operation &operation);
void run_iota(Operation &operation);
void run_size(Operation &operation);
void run_reduce(Operation &operation);
void run_arg_reduce(Operation &operation);
void run_dot_general(Operation &operation);
void run_scan(Operation &operation);
void run_gather(Operation &operation);
void run_dynamic_slice(Operation &operation);
void run_dynamic_update_slice(Operation &operation);
void run_scatter(Operation &operation);
void run_argsort(Operation &operation);
void run_reduce_window(Operation &operation);
void run_select_and_scatter_add(Operation &operation);
void run_select_and_gather_add(Operation &operation);
void run_convolution(Operation &operation);

} // namespace scalide

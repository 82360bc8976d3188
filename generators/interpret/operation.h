#pragma once
#include "interpret/interpret.h"
#include <string_view>

namespace scalide {

/// One node that is about to run: a base operator with its operands as arrays.
struct Operation {
    std::string_view op;
    Attributes attributes; ///< without symbols
    std::vector<const Array *> operands;
    std::vector<Array> results; ///< dtype and shape are set; the operator fills in the data
    Mode mode = Mode::real;
    // For callers that observe the run:
    const Node *node = nullptr;
    const Program *program = nullptr; ///< the program or the region that has the node
    /// The node of the interpreted program, or of one of its regions, that contains the operator: `node`, or the composite operator around
    /// it.
    const Node *user_node = nullptr;
    const Program *user_program = nullptr;
    int64_t step = -1; ///< of the innermost loop around the node, counted from 0 in the order of the run; -1: none

    const Array &operand(size_t number) const { return *operands[number]; }
    Array &result() { return results[0]; }
    /// Returns a list attribute of integers, or an empty list if the attribute is absent.
    std::vector<int64_t> integers(const std::string &attribute) const;
};

/// Computes the results of an operation.
using Run = void (*)(Operation &);

/// Returns the function that runs a base operator. Throws InternalError for an unknown name.
Run find_run(std::string_view op);

/// Returns the number of elements of a shape.
int64_t element_count(const std::vector<int64_t> &shape);

/// Converts computed elements to the array's dtype: integers wrap around and bools become 0 or 1. In mode `stored`, floats are rounded.
void store(Array &array, Mode mode);

// Each family has its own source file.
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
void run_axis_index(Operation &operation);
void run_exchange(Operation &operation);
void run_collect(Operation &operation);

} // namespace scalide

#include "expr/operator_rows.h"
#include <algorithm>

namespace scalide {

namespace {

/// Sums start with +0.
constexpr Signs sums = {From::no_operand, From::all_operands};
/// The maximum of no elements is -infinity.
constexpr Signs largest = {From::all_operands, From::nothing};

// clang-format off
constexpr BaseOperator rows[] = {
    // movement
    {.name = "broadcast_in_dim", .shape = Shape::movement, .arity = 1, .cost = 1, .signs = signs_of_operands, .repeats = true},
    {.name = "reshape", .shape = Shape::movement, .arity = 1, .cost = 1, .signs = signs_of_operands},
    {.name = "transpose", .shape = Shape::movement, .arity = 1, .cost = 1, .signs = signs_of_operands},
    {.name = "rev", .shape = Shape::movement, .arity = 1, .cost = 1, .signs = signs_of_operands},
    {.name = "slice", .shape = Shape::movement, .arity = 1, .cost = 1, .signs = signs_of_operands},
    {.name = "pad", .shape = Shape::movement, .arity = 2, .cost = 1, .signs = signs_of_operands, .joins = true},
    {.name = "concatenate", .shape = Shape::movement, .arity = -1, .cost = 1, .signs = signs_of_operands, .joins = true},
    {.name = "gather", .shape = Shape::movement, .arity = 2, .cost = 1, .repeats = true, .reads_indices = true},
    {.name = "dynamic_slice", .shape = Shape::movement, .arity = -1, .cost = 1, .reads_indices = true},
    {.name = "dynamic_update_slice", .shape = Shape::movement, .arity = -1, .cost = 1, .joins = true, .reads_indices = true},
    // sources
    {.name = "constant", .shape = Shape::source, .arity = 0, .cost = 1},
    {.name = "iota", .shape = Shape::source, .arity = 0, .cost = 1, .signs = never_below_zero},
    {.name = "size", .shape = Shape::source, .arity = 0, .cost = 1, .signs = never_below_zero},
    {.name = "axis_index", .shape = Shape::source, .arity = 0, .cost = 1, .signs = never_below_zero},
    // between ranks
    {.name = "exchange", .shape = Shape::collective, .arity = -1, .cost = 1, .joins = true},
    {.name = "collect", .shape = Shape::collective, .arity = -1, .cost = 1, .joins = true},
    {.name = "all_reduce_max_over", .shape = Shape::collective, .arity = 1, .cost = 1, .signs = largest},
    // reductions
    {.name = "reduce_sum", .shape = Shape::reduce, .arity = 1, .cost = 1, .signs = sums, .fold = "add"},
    {.name = "reduce_max", .shape = Shape::reduce, .arity = 1, .cost = 1, .signs = largest, .fold = "max"},
    {.name = "reduce_min", .shape = Shape::reduce, .arity = 1, .cost = 1, .signs = signs_of_operands, .fold = "min"},
    {.name = "reduce_prod", .shape = Shape::reduce, .arity = 1, .cost = 1, .fold = "mul"},
    {.name = "reduce_and", .shape = Shape::reduce, .arity = 1, .cost = 1, .fold = "and"},
    {.name = "reduce_or", .shape = Shape::reduce, .arity = 1, .cost = 1, .fold = "or"},
    {.name = "reduce_xor", .shape = Shape::reduce, .arity = 1, .cost = 1, .fold = "xor"},
    {.name = "argmax", .shape = Shape::reduce, .arity = 1, .cost = 1, .fold = "max", .gives_place = true},
    {.name = "argmin", .shape = Shape::reduce, .arity = 1, .cost = 1, .fold = "min", .gives_place = true},
    // scans
    {.name = "cumsum", .shape = Shape::scan, .arity = 1, .cost = 1, .signs = sums, .fold = "add"},
    {.name = "cumprod", .shape = Shape::scan, .arity = 1, .cost = 1, .fold = "mul"},
    {.name = "cummax", .shape = Shape::scan, .arity = 1, .cost = 1, .fold = "max"},
    {.name = "cummin", .shape = Shape::scan, .arity = 1, .cost = 1, .fold = "min"},
    {.name = "cumlogsumexp", .shape = Shape::scan, .arity = 1, .cost = 1, .signs = {From::no_operand, From::nothing}},
    // scatters
    {.name = "scatter", .shape = Shape::scatter, .arity = 3, .cost = 1, .reads_indices = true},
    {.name = "scatter_add", .shape = Shape::scatter, .arity = 3, .cost = 1, .reads_indices = true, .fold = "add"},
    {.name = "scatter_mul", .shape = Shape::scatter, .arity = 3, .cost = 1, .reads_indices = true, .fold = "mul"},
    {.name = "scatter_min", .shape = Shape::scatter, .arity = 3, .cost = 1, .reads_indices = true, .fold = "min"},
    {.name = "scatter_max", .shape = Shape::scatter, .arity = 3, .cost = 1, .reads_indices = true, .fold = "max"},
    // sorting
    {.name = "argsort", .shape = Shape::sort, .arity = -1, .cost = 1, .signs = never_below_zero},
    // contraction
    {.name = "dot_general", .shape = Shape::contract, .arity = 2, .cost = 1, .signs = sums, .sums_products = true},
    // windows
    {.name = "reduce_window_sum", .shape = Shape::window, .arity = 1, .cost = 1, .fold = "add"},
    {.name = "reduce_window_max", .shape = Shape::window, .arity = 1, .cost = 1, .fold = "max"},
    {.name = "reduce_window_min", .shape = Shape::window, .arity = 1, .cost = 1, .fold = "min"},
    {.name = "select_and_scatter_add", .shape = Shape::window, .arity = 2, .cost = 1, .fold = "add"},
    {.name = "select_and_gather_add", .shape = Shape::window, .arity = 2, .cost = 1},
    {.name = "conv_general_dilated", .shape = Shape::window, .arity = 2, .cost = 1, .sums_products = true},
};
// clang-format on

static_assert(std::ranges::all_of(rows, is_complete));

} // namespace

std::span<const BaseOperator> array_operators() { return rows; }

} // namespace scalide

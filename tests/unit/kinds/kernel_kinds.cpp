#include "kinds/kernel_kinds.h"
#include "ir/text.h"
#include "ir/verify.h"
#include <gtest/gtest.h>

// What is no kernel of its kind is named with its reason. That all kernels of tests/kernels and all that `fuse` makes are legal is seen
// where these run: `lower` and the pipeline ask.
namespace scalide {
namespace {

struct IllegalKernel {
    const char *name, *kernel, *why;
};

const IllegalKernel illegal_kernels[] = {
    {"composite", "{kind: map} (x: f32[4]) -> (y: f32[4]) {\n y = relu(x) : f32[4]\n}",
     "relu.op: a kernel must consist of base operators, got relu"},
    {"unknown_kind", "{kind: maps} (x: f32[4]) -> (y: f32[4]) {\n y = abs(x) : f32[4]\n}", "k.kind: must be a kind of kernel, got maps"},
    {"narrow_arithmetic", "{kind: map} (x: f16[4]) -> (y: f16[4]) {\n y = abs(x) : f16[4]\n}",
     "abs.y: must read an 8- or 16-bit value through a convert_element_type, got x"},
    {"folded_one", "{kind: row, row_axes: 1} (x: f32[4, 1]) -> (y: f32[4]) {\n y = reduce_sum(x) {axes: [1]} : f32[4]\n}",
     "reduce_sum.y: must not reduce an axis of extent 1, got axis 1"},
    {"overwritten_and_moved",
     "{kind: map} (w: f32[4, 4] inout) -> (w = v) {\n t = transpose(w) {permutation: [1, 0]} : f32[4, 4]\n v = add(w, t) : f32[4, 4]\n}",
     "transpose.t: must be elementwise, because it reads w, which the kernel updates in place, got transpose [4, 4]"},
    {"overwritten_and_folded",
     "{kind: full} (w: f32[4] inout, x: f32[4]) -> (w = v, s: f32[]) {\n v = add(w, x) : f32[4]\n s = reduce_sum(w) {axes: [0]} : f32[]\n}",
     "reduce_sum.s: must be elementwise, because it reads w, which the kernel updates in place, got reduce_sum []"},
    {"scalar_with_array", "{kind: scalar} (x: f32[4]) -> (y: f32[4]) {\n y = abs(x) : f32[4]\n}", "k.x: must be a scalar, got f32[4]"},
    {"map_that_folds", "{kind: map} (x: f32[4]) -> (s: f32[]) {\n s = reduce_sum(x) {axes: [0]} : f32[]\n}",
     "reduce_sum.s: must be elementwise, movement or a source, got reduce_sum"},
    {"transpose_of_nothing", "{kind: transpose} (x: f32[4]) -> (y: f32[4]) {\n y = abs(x) : f32[4]\n}",
     "k: must have one transpose, got 0"},
    {"tiled_overwrites", "{kind: tiled} (w: f32[4, 8] inout) -> (w = v) {\n v = abs(w) : f32[4, 8]\n}",
     "k.w: must not overwrite an argument, got inout"},
    {"tiled_sums",
     "{kind: tiled} (x: f32[4, 8]) -> (y: f32[4, 8], s: f32[]) {\n y = abs(x) : f32[4, 8]\n s = reduce_sum(y) {axes: [0, 1]} : f32[]\n}",
     "reduce_sum.s: must reduce all elements with an operator that gives the same bits in every order, got reduce_sum to []"},
    {"tiled_of_one", "{kind: tiled} (x: f32[4, 1]) -> (y: f32[4, 1]) {\n y = abs(x) : f32[4, 1]\n}",
     "k.y: must have the shape of the tiles, [4], at most 3 axes and none of extent 1, got f32[4, 1]"},
    {"transpose_of_others",
     "{kind: transpose} (x: f32[2, 3, 4]) -> (y: f32[3, 2, 4]) {\n y = transpose(x) {permutation: [1, 0, 2]} : f32[3, 2, 4]\n}",
     "transpose.y: must be a transpose of the innermost axis, got transpose"},
    {"row_of_columns", "{kind: row, row_axes: 1} (x: f32[4, 8]) -> (y: f32[8]) {\n y = reduce_sum(x) {axes: [0]} : f32[8]\n}",
     "k: a row kernel must have a reduction over its trailing axes"},
    {"row_of_two_shapes",
     "{kind: row, row_axes: 1} (x: f32[4, 8], z: f32[4, 9]) -> (y: f32[4], s: f32[4]) {\n y = reduce_sum(x) {axes: [1]} : f32[4]"
     "\n s = reduce_sum(z) {axes: [1]} : f32[4]\n}",
     "reduce_sum.s: must reduce the columns, the rows or all of [4, 8], or all of [4], got [4, 9] to [4]"},
    {"row_that_turns",
     "{kind: row, row_axes: 1} (x: f32[4, 4]) -> (y: f32[4, 4]) {\n s = reduce_sum(x) {axes: [1]} : f32[4]"
     "\n t = broadcast_in_dim(s) {dims: [1], shape: [4, 4]} : f32[4, 4]\n y = mul(x, t) : f32[4, 4]\n}",
     "broadcast_in_dim.t: must read the result of a row reduction at the same row, got broadcast_in_dim"},
    {"row_chosen_by_all",
     "{kind: row, row_axes: 1} (x: f32[4, 8]) -> (y: f32[4, 8], s: f32[4]) {\n s = reduce_max(x) {axes: [1]} : f32[4]"
     "\n a = reduce_max(x) {axes: [0, 1]} : f32[]\n g = gt(a, 0.0) : bool[]\n n = neg(x) : f32[4, 8]"
     "\n y = select_n(g, x, n) : f32[4, 8]\n}",
     "select_n.y: must read the result of a row reduction at the same row, got select_n"},
    {"column_beside_full",
     "{kind: column} (x: f32[4, 8]) -> (y: f32[8], s: f32[]) {\n y = reduce_sum(x) {axes: [0]} : f32[8]\n s = reduce_max(x) {axes: [0, 1]} "
     ": "
     "f32[] }",
     "reduce_max.s: must reduce leading axes, or all remaining axes, got [4, 8] to []"},
    {"full_of_rows", "{kind: full} (x: f32[4, 8]) -> (y: f32[4]) {\n y = reduce_sum(x) {axes: [1]} : f32[4]\n}",
     "reduce_sum.y: must reduce all elements of an array that no reduction computed, got [4]"},
    {"full_with_array",
     "{kind: full} (x: f32[4]) -> (y: f32[4], s: f32[]) {\n y = abs(x) : f32[4]\n s = reduce_sum(y) {axes: [0]} : f32[]\n}",
     "k.y: must have the shape [], got [4]"},
    {"contract_of_none", "{kind: contract} (x: f32[4, 8]) -> (y: f32[4, 8]) {\n y = abs(x) : f32[4, 8]\n}",
     "k: must have one dot_general, got 0"},
    {"contract_of_many_axes",
     "{kind: contract} (x: f32[2, 3, 4], y: f32[4, 5]) -> (z: f32[2, 3, 5]) {\n z = dot_general(x, y) {contract: [[2], [0]], batch: [[], "
     "[]]} : f32[2, 3, 5]\n}",
     "dot_general.z: must have at most one axis of each kind, got 0 batch, 1 contracting, 2 free"},
    {"contract_and_row",
     "{kind: contract} (x: f32[3, 4], y: f32[4, 5]) -> (s: f32[3]) {\n z = dot_general(x, y) {contract: [[1], [0]], batch: [[], []]} : "
     "f32[3, 5]"
     "\n s = reduce_sum(z) {axes: [1]} : f32[3]\n}",
     "reduce_sum.s: must reduce all of [3, 5], or sum an operand over the contracted axis, got [3, 5] to [3]"},
    {"contract_that_turns",
     "{kind: contract} (x: f32[3, 4], y: f32[4, 5]) -> (t: f32[5, 3]) {\n z = dot_general(x, y) {contract: [[1], [0]], batch: [[], []]} : "
     "f32[3, 5]"
     "\n t = transpose(z) {permutation: [1, 0]} : f32[5, 3]\n}",
     "transpose.t: must read its operands at the same index, got transpose"},
    {"contract_chosen_by_all",
     "{kind: contract} (x: f32[3, 4], y: f32[4, 5]) -> (t: f32[3, 5]) {\n z = dot_general(x, y) {contract: [[1], [0]], batch: [[], []]} : "
     "f32[3, 5]\n s = reduce_sum(z) {axes: [0, 1]} : f32[]\n g = gt(s, 0.0) : bool[]\n t = select_n(g, z, z) : f32[3, 5]\n}",
     "select_n.t: must read its operands at the same index, got select_n"},
    {"contract_that_stores_nothing",
     "{kind: contract} (x: f32[3, 4], y: f32[4, 5]) -> (s: f32[]) {\n z = dot_general(x, y) {contract: [[1], [0]], batch: [[], []]} : "
     "f32[3, 5]\n s = reduce_sum(z) {axes: [0, 1]} : f32[]\n}",
     "k: one result must have the shape [3, 5]"},
    {"scan_of_a_sum",
     "{kind: scan} (x: f32[3, 4]) -> (y: f32[3]) {\n s = reduce_sum(x) {axes: [1]} : f32[3]\n y = cumsum(s) {axis: 0, reverse: false} : "
     "f32[3] }",
     "reduce_sum.s: must be elementwise, movement or a source, got reduce_sum"},
    {"two_scans",
     "{kind: scan} (x: f32[3]) -> (y: f32[3]) {\n s = cumsum(x) {axis: 0, reverse: false} : f32[3]\n y = cumsum(s) {axis: 0, reverse: "
     "false} "
     ": f32[3] }",
     "k: must have one scan, got 2"},
    {"sort_of_nothing", "{kind: sort} (x: f32[3]) -> (y: f32[3]) {\n y = abs(x) : f32[3]\n}", "k: must have one argsort, got 0"},
    {"scatter_of_nothing", "{kind: scatter} (x: f32[3]) -> (y: f32[3]) {\n y = abs(x) : f32[3]\n}", "k: must have one scatter, got 0"},
    {"window_of_nothing", "{kind: window} (x: f32[3]) -> (y: f32[3]) {\n y = abs(x) : f32[3]\n}",
     "k: must have one window operator, got 0"},
    {"small_that_scans", "{kind: small} (x: f32[3]) -> (y: f32[3]) {\n y = cumsum(x) {axis: 0, reverse: false} : f32[3]\n}",
     "cumsum.y: must be an elementwise operator, movement, a source, a reduction or a matmul, got cumsum [3]"},
    {"small_of_a_symbol", "{kind: small} [n in 1..4] (x: f32[n]) -> (y: f32[n]) {\n y = abs(x) : f32[n]\n}",
     "abs.y: must be an operator on arrays of 1 to 4096 elements with static extents, got abs [n]"},
    {"small_sum_of_much", "{kind: small} (x: f32[8192]) -> (y: f32[]) {\n y = reduce_sum(x) {axes: [0]} : f32[]\n}",
     "reduce_sum.y: must be an operator on arrays of 1 to 4096 elements with static extents, got reduce_sum []"},
    {"small_sum_of_many_rows", "{kind: small} (x: f32[129, 2]) -> (y: f32[2]) {\n y = reduce_sum(x) {axes: [0]} : f32[2]\n}",
     "reduce_sum.y: must be a reduction of at most 128 rows, got reduce_sum [2]"},
    {"small_matmul_of_many_terms",
     "{kind: small} (x: f32[1025], w: f32[1025]) -> (y: f32[]) {\n y = dot_general(x, w) {contract: [[0], [0]]} : f32[]\n}",
     "dot_general.y: must be a matmul over at most 1024 terms, got dot_general []"},
    {"small_matmul_of_much",
     "{kind: small} (x: f32[32, 32], w: f32[32, 8]) -> (y: f32[32, 8]) {\n y = dot_general(x, w) {contract: [[1], [0]]} : f32[32, 8]\n}",
     "dot_general.y: must be a matmul of at most 2048 products, got dot_general [32, 8]"},
    {"small_matmul_of_bf16",
     "{kind: small} (x: bf16[4, 4], w: f32[4, 4]) -> (y: f32[4, 4]) {\n v = convert_element_type(x) {dtype: f32} : f32[4, 4]"
     "\n t = transpose(v) {permutation: [1, 0]} : f32[4, 4]\n y = dot_general(t, w) {contract: [[1], [0]]} : f32[4, 4]\n}",
     "dot_general.y: must be a matmul of numbers of 32 bits, because class contract adds products of low-precision numbers in pairs, got "
     "dot_general [4, 4]"},
    {"small_overwrites", "{kind: small} (w: f32[4] inout) -> (w = v) {\n v = abs(w) : f32[4]\n}",
     "k.w: must not overwrite an argument, got inout"},
};

TEST(kinds, say_why_a_kernel_is_illegal) {
    for (const IllegalKernel &illegal : illegal_kernels) {
        SCOPED_TRACE(illegal.name);
        const Program program = parse_program("program k " + std::string(illegal.kernel), "k.scl");
        verify(program, "");
        EXPECT_EQ(why_illegal(program), illegal.why);
    }
}

TEST(kinds, names_all) { EXPECT_EQ(kernel_kinds().size(), 13u); }

} // namespace
} // namespace scalide

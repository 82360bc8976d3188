#include "support.h"
#include <gtest/gtest.h>

// Rules of `simplify` for loops and branches. regions_agree.cpp compares the bits of random programs.

namespace scalide {

TEST(transforms, simplify_drops_unread_stacks_carries_and_captures) {
    EXPECT_EQ(simplified("(u: f32[4], h0: f32[4], xs: f32[9, 4], zs: f32[9, 4]) -> (h: f32[4]) {\n"
                         " h, count, ys = scan(u, h0, h0, xs, zs) {length: 9} with\n"
                         "  body(u: f32[4], h: f32[4] inout, k: f32[4] inout, x: f32[4] each, z: f32[4] each)\n"
                         "   -> (h = after, k = next, y: f32[4] = more) {\n"
                         "   after = add(h, x)\n next = add(k, z)\n more = mul(next, u)\n }\n}"),
              "h = scan(h0, xs) {length: 9} : f32[4] with\n"
              "  body(h: f32[4] inout, x: f32[4] each) -> (h = after) {\n"
              "    after = add(h, x) : f32[4]\n"
              "  }\n");
}

TEST(transforms, simplify_keeps_carries_that_a_test_or_another_carry_reads) {
    EXPECT_EQ(simplified("(a: f32[], n: f32[]) -> (x: f32[]) {\n"
                         " x, y, z, w = while(a, a, n, a) with\n"
                         "  test(x: f32[], y: f32[], z: f32[], w: f32[]) -> (more: bool[]) {\n more = lt(x, z)\n },\n"
                         "  body(x: f32[] inout, y: f32[] inout, z: f32[] inout, w: f32[] inout)\n"
                         "   -> (x = next, y = grown, z = less, w = unread) {\n"
                         "   next = add(x, y)\n grown = exp(y)\n less = tanh(z)\n unread = add(w, y)\n }\n}"),
              "x, y, z = while(a, a, n) : f32[], f32[], f32[] with\n"
              "  test(x: f32[], y: f32[], z: f32[]) -> (more: bool[]) {\n"
              "    more = lt(x, z) : bool[]\n"
              "  },\n"
              "  body(x: f32[] inout, y: f32[] inout, z: f32[] inout) -> (x = next, y = grown, z = less) {\n"
              "    next = add(x, y) : f32[]\n"
              "    grown = exp(y) : f32[]\n"
              "    less = tanh(z) : f32[]\n"
              "  }\n");
}

TEST(transforms, simplify_drops_unread_results_of_branches) {
    EXPECT_EQ(
        simplified("(i: i32[], x: f32[4], y: f32[4]) -> (a: f32[4], c: f32[4]) {\n"
                   " a, b, c = switch(i, x, y, x) with\n"
                   "  one(x: f32[4], y: f32[4], z: f32[4]) -> (a: f32[4], b: f32[4], c: f32[4] = a) {\n a = exp(z)\n b = neg(y)\n },\n"
                   "  two(x: f32[4], y: f32[4], z: f32[4]) -> (a: f32[4], b: f32[4], c: f32[4] = a) {\n a = sin(x)\n b = exp(y)\n }\n}"),
        "a = switch(i, x) : f32[4] with\n"
        "  one(x: f32[4]) -> (a: f32[4]) {\n"
        "    a = exp(x) : f32[4]\n"
        "  },\n"
        "  two(x: f32[4]) -> (a: f32[4]) {\n"
        "    a = sin(x) : f32[4]\n"
        "  }\n");
}

TEST(transforms, simplify_makes_captures_of_carries_that_never_change) {
    EXPECT_EQ(simplified("(a: f32[4], b: f32[4]) -> (x: f32[4], y: f32[4]) {\n"
                         " x, y = scan(a, b) {length: 9} with\n"
                         "  body(x: f32[4] inout, y: f32[4] inout) -> (x = next, y = y) {\n next = mul(x, y)\n }\n}"),
              "x = scan(a, b) {length: 9} : f32[4] with\n"
              "  body(x: f32[4] inout, y: f32[4]) -> (x = next) {\n"
              "    next = mul(x, y) : f32[4]\n"
              "  }\n");
}

TEST(transforms, simplify_merges_carries_that_change_equally) {
    EXPECT_EQ(simplified("(a: f32[4], xs: f32[9, 4]) -> (x: f32[4], y: f32[4], z: f32[4], w: f32[4]) {\n"
                         " x, y, z, w = scan(a, a, a, a, xs) {length: 9} with\n"
                         "  body(x: f32[4] inout, y: f32[4] inout, z: f32[4] inout, w: f32[4] inout, e: f32[4] each)\n"
                         "   -> (x = a, y = b, z = c, w = d) {\n a = mul(y, e)\n b = mul(x, e)\n c = mul(w, e)\n d = add(z, e)\n }\n}"),
              "x, z, w = scan(a, a, a, xs) {length: 9} : f32[4], f32[4], f32[4] with\n"
              "  body(x: f32[4] inout, z: f32[4] inout, w: f32[4] inout, e: f32[4] each) -> (x = a, z = c, w = d) {\n"
              "    a = mul(x, e) : f32[4]\n"
              "    c = mul(w, e) : f32[4]\n"
              "    d = add(z, e) : f32[4]\n"
              "  }\n");
}

TEST(transforms, simplify_inlines_the_branch_that_runs) {
    const std::string branches = " y = switch(i, x) with\n  one(x: f32[4]) -> (y: f32[4]) {\n y = exp(x)\n },\n"
                                 "  two(x: f32[4]) -> (y: f32[4]) {\n y = FUNCTION(x)\n }\n}";
    const auto with = [&](const std::string &function) { return std::string(branches).replace(branches.find("FUNCTION"), 8, function); };
    EXPECT_EQ(simplified("(x: f32[4]) -> (y: f32[4]) {\n i = constant() {value: 7, dtype: i32}\n" + with("sin")), "y = sin(x) : f32[4]\n");
    EXPECT_EQ(simplified("(i: i32[], x: f32[4]) -> (y: f32[4]) {\n" + with("exp")), "y = exp(x) : f32[4]\n");
}

TEST(transforms, simplify_gives_captures_that_all_branches_return) {
    EXPECT_EQ(simplified("(i: i32[], x: f32[4], z: f32[4]) -> (a: f32[4], b: f32[4]) {\n"
                         " a, b = switch(i, x, z) with\n"
                         "  one(x: f32[4], z: f32[4]) -> (a: f32[4], b: f32[4] = x) {\n a = exp(x)\n },\n"
                         "  two(x: f32[4], z: f32[4]) -> (a: f32[4], b: f32[4] = x) {\n a = neg(z)\n }\n}"),
              "a = switch(i, x, z) : f32[4] with\n"
              "  one(x: f32[4], z: f32[4]) -> (a: f32[4]) {\n"
              "    a = exp(x) : f32[4]\n"
              "  },\n"
              "  two(x: f32[4], z: f32[4]) -> (a: f32[4]) {\n"
              "    a = neg(z) : f32[4]\n"
              "  }\n");
}

TEST(transforms, simplify_runs_no_step_and_one_step) {
    const auto loop = [](const std::string &length) {
        return "(h: f32[4], xs: f32[" + length + ", 4]) -> (last: f32[4], ys: f32[" + length +
               ", 4]) {\n last, ys = scan(h, xs) {length: " + length +
               "} with\n  body(h: f32[4] inout, x: f32[4] each, i: i32[] step) -> (h = next, y: f32[4] = y) {\n" +
               " n = add(h, x)\n k = convert_element_type(i) {dtype: f32}\n next = mul(n, k)\n y = exp(n)\n }\n}";
    };
    EXPECT_EQ(simplified(loop("0")), "constant = constant() {dtype: f32, value: 0.0} : f32[]\n"
                                     "broadcast_in_dim = broadcast_in_dim(constant) {dims: [], shape: [0, 4]} : f32[0, 4]\n");
    EXPECT_EQ(simplified(loop("1")), "reshape = reshape(xs) {shape: [4]} : f32[4]\n"
                                     "n = add(h, reshape) : f32[4]\n"
                                     "constant1 = constant() {dtype: f32, value: 0.0} : f32[]\n"
                                     "broadcast_in_dim = broadcast_in_dim(constant1) {dims: [], shape: [4]} : f32[4]\n"
                                     "next = mul(n, broadcast_in_dim) : f32[4]\n"
                                     "y = exp(n) : f32[4]\n"
                                     "reshape1 = reshape(y) {shape: [1, 4]} : f32[1, 4]\n");
}

TEST(transforms, simplify_takes_the_length_from_a_constant_count) {
    const auto loop = [](const std::string &count, const std::string &attributes) {
        return "(h: f32[4]) -> (last: f32[4]) {\n n = constant() {value: " + count + ", dtype: i32}\n last = scan(n, h) {count: true" +
               attributes + "} with\n  body(h: f32[4] inout) -> (h = next) {\n next = exp(h)\n }\n}";
    };
    EXPECT_EQ(simplified(loop("7", "")), "last = scan(h) {length: 7} : f32[4] with\n"
                                         "  body(h: f32[4] inout) -> (h = next) {\n"
                                         "    next = exp(h) : f32[4]\n"
                                         "  }\n");
    EXPECT_EQ(simplified(loop("-2", "")), "");
    EXPECT_EQ(simplified(loop("7", ", length: 5")), "last = scan(h) {length: 5} : f32[4] with\n"
                                                    "  body(h: f32[4] inout) -> (h = next) {\n"
                                                    "    next = exp(h) : f32[4]\n"
                                                    "  }\n");
    EXPECT_EQ(simplified(loop("7", ", length: 8")), "n = constant() {dtype: i32, value: 7} : i32[]\n"
                                                    "last = scan(n, h) {count: true, length: 8} : f32[4] with\n"
                                                    "  body(h: f32[4] inout) -> (h = next) {\n"
                                                    "    next = exp(h) : f32[4]\n"
                                                    "  }\n");
}

TEST(transforms, simplify_counts_the_steps_of_a_while) {
    const auto loop = [](const std::string &test, const std::string &step, const std::string &attributes = "") {
        return "(n: i32[], i: i32[], h: f32[4]) -> (last: i32[], y: f32[4]) {\n last, y = while(n, i, h) " + attributes +
               " with\n  test(n: i32[], i: i32[], h: f32[4]) -> (more: bool[]) {\n more = " + test +
               "\n },\n  body(n: i32[], i: i32[] inout, h: f32[4] inout) -> (i = next, h = after) {\n next = add(i, " + step +
               ")\n k = convert_element_type(i) {dtype: f32}\n s = broadcast_in_dim(k) {shape: [4], dims: []}\n after = add(h, s)\n }\n}";
    };
    EXPECT_EQ(simplified(loop("lt(i, n)", "1")), "sub = sub(n, i) : i32[]\n"
                                                 "constant = constant() {dtype: i32, value: 0} : i32[]\n"
                                                 "lt = lt(sub, constant) : bool[]\n"
                                                 "constant1 = constant() {dtype: i32, value: 2147483647} : i32[]\n"
                                                 "select_n = select_n(lt, sub, constant1) : i32[]\n"
                                                 "gt = gt(n, i) : bool[]\n"
                                                 "select_n1 = select_n(gt, constant, select_n) : i32[]\n"
                                                 "max = max(i, n) : i32[]\n"
                                                 "y = scan(select_n1, i, h) {count: true} : f32[4] with\n"
                                                 "  body(i: i32[], h: f32[4] inout, step: i32[] step) -> (h = after) {\n"
                                                 "    add = add(i, step) : i32[]\n"
                                                 "    k = convert_element_type(add) {dtype: f32} : f32[]\n"
                                                 "    s = broadcast_in_dim(k) {dims: [], shape: [4]} : f32[4]\n"
                                                 "    after = add(h, s) : f32[4]\n"
                                                 "  }\n");
    EXPECT_EQ(simplified(loop("gt(9, i)", "1")), "constant = constant() {dtype: i32, value: 9} : i32[]\n"
                                                 "sub = sub(constant, i) : i32[]\n"
                                                 "constant1 = constant() {dtype: i32, value: 0} : i32[]\n"
                                                 "lt = lt(sub, constant1) : bool[]\n"
                                                 "constant2 = constant() {dtype: i32, value: 2147483647} : i32[]\n"
                                                 "select_n = select_n(lt, sub, constant2) : i32[]\n"
                                                 "gt = gt(constant, i) : bool[]\n"
                                                 "select_n1 = select_n(gt, constant1, select_n) : i32[]\n"
                                                 "max = max(i, constant) : i32[]\n"
                                                 "y = scan(select_n1, i, h) {count: true} : f32[4] with\n"
                                                 "  body(i: i32[], h: f32[4] inout, step: i32[] step) -> (h = after) {\n"
                                                 "    add = add(i, step) : i32[]\n"
                                                 "    k = convert_element_type(add) {dtype: f32} : f32[]\n"
                                                 "    s = broadcast_in_dim(k) {dims: [], shape: [4]} : f32[4]\n"
                                                 "    after = add(h, s) : f32[4]\n"
                                                 "  }\n");
    for (const std::string &other :
         {loop("lt(i, n)", "2"), loop("le(i, n)", "1"), loop("lt(n, i)", "1"), loop("lt(i, n)", "1", "{max_steps: 9}")})
        EXPECT_NE(simplified(other).find("while("), std::string::npos) << other;
}

TEST(transforms, simplify_makes_a_length_of_a_while_with_constant_bounds) {
    EXPECT_EQ(simplified("(h: f32[4]) -> (y: f32[4], n: i32[]) {\n zero = constant() {value: 3, dtype: i32}\n n, y = while(zero, h) with\n"
                         "  test(i: i32[], h: f32[4]) -> (more: bool[]) {\n more = lt(i, 10)\n },\n"
                         "  body(i: i32[] inout, h: f32[4] inout) -> (i = next, h = after) {\n next = add(1, i)\n after = exp(h)\n }\n}"),
              "constant = constant() {dtype: i32, value: 10} : i32[]\n"
              "y = scan(h) {length: 7} : f32[4] with\n"
              "  body(h: f32[4] inout) -> (h = after) {\n"
              "    after = exp(h) : f32[4]\n"
              "  }\n");
}

TEST(transforms, simplify_moves_invariants_out_of_loops) {
    EXPECT_EQ(simplified("(w: bf16[8, 8], v: f32[8], h: f32[8]) -> (y: f32[8]) {\n y = scan(w, v, h) {length: 9} with\n"
                         "  body(w: bf16[8, 8], v: f32[8], h: f32[8] inout) -> (h = next) {\n"
                         "   t = transpose(w) {permutation: [1, 0]}\n f = convert_element_type(t) {dtype: f32}\n"
                         "   s = exp(v)\n p = dot_general(f, s) {contract: [[1], [0]]}\n"
                         "   q = dot_general(f, h) {contract: [[1], [0]]}\n next = add(p, q)\n }\n}"),
              "t = transpose(w) {permutation: [1, 0]} : bf16[8, 8]\n"
              "f = convert_element_type(t) {dtype: f32} : f32[8, 8]\n"
              "s = exp(v) : f32[8]\n"
              "p = dot_general(f, s) {batch: [[], []], contract: [[1], [0]], preferred: f32} : f32[8]\n"
              "y = scan(w, h, p) {length: 9} : f32[8] with\n"
              "  body(w: bf16[8, 8], h: f32[8] inout, p1: f32[8]) -> (h = next) {\n"
              "    t = transpose(w) {permutation: [1, 0]} : bf16[8, 8]\n"
              "    f = convert_element_type(t) {dtype: f32} : f32[8, 8]\n"
              "    q = dot_general(f, h) {batch: [[], []], contract: [[1], [0]], preferred: f32} : f32[8]\n"
              "    next = add(p1, q) : f32[8]\n"
              "  }\n");
    EXPECT_EQ(simplified("(v: f32[n], h: f32[n, n], k: f32[]) -> (y: f32[n, n]) {\n y = while(v, h, k) with\n"
                         "  test(v: f32[n], h: f32[n, n], k: f32[]) -> (more: bool[]) {\n m = reduce_max(h) {axes: [0, 1]}\n"
                         "   e = exp(k)\n more = lt(m, e)\n },\n"
                         "  body(v: f32[n], h: f32[n, n] inout, k: f32[]) -> (h = next) {\n"
                         "   a = broadcast_in_dim(v) {shape: [n, n], dims: [0]}\n b = broadcast_in_dim(v) {shape: [n, n], dims: [1]}\n"
                         "   outer = mul(a, b)\n next = add(h, outer)\n }\n}"),
              "y = while(v, h, k) : f32[n, n] with\n"
              "  test(v: f32[n], h: f32[n, n], k: f32[]) -> (more: bool[]) {\n"
              "    m = reduce_max(h) {axes: [0, 1]} : f32[]\n"
              "    e = exp(k) : f32[]\n"
              "    more = lt(m, e) : bool[]\n"
              "  },\n"
              "  body(v: f32[n], h: f32[n, n] inout, k: f32[]) -> (h = next) {\n"
              "    a = broadcast_in_dim(v) {dims: [0], shape: [n, n]} : f32[n, n]\n"
              "    b = broadcast_in_dim(v) {dims: [1], shape: [n, n]} : f32[n, n]\n"
              "    outer = mul(a, b) : f32[n, n]\n"
              "    next = add(h, outer) : f32[n, n]\n"
              "  }\n");
}

TEST(transforms, simplify_moves_invariants_out_of_nested_loops) {
    EXPECT_EQ(simplified("(v: f32[8], h: f32[8]) -> (y: f32[8]) {\n y = scan(v, h) {length: 9} with\n"
                         "  outer(v: f32[8], h: f32[8] inout) -> (h = z) {\n z = scan(v, h) {length: 7} with\n"
                         "   inner(v: f32[8], h: f32[8] inout) -> (h = next) {\n s = exp(v)\n next = add(h, s)\n }\n }\n}"),
              "s = exp(v) : f32[8]\n"
              "y = scan(h, s) {length: 9} : f32[8] with\n"
              "  outer(h: f32[8] inout, s1: f32[8]) -> (h = z) {\n"
              "    z = scan(h, s1) {length: 7} : f32[8] with\n"
              "      inner(h: f32[8] inout, s1: f32[8]) -> (h = next) {\n"
              "        next = add(h, s1) : f32[8]\n"
              "      }\n"
              "  }\n");
}

TEST(transforms, simplify_gives_stacks_that_are_known) {
    EXPECT_EQ(
        simplified("(v: f32[8], h: f32[8], xs: f32[t, 8]) -> (y: f32[8], a: f32[t, 8], b: i32[t], c: f32[t, 8], d: f32[t, 8]) {\n"
                   " y, a, b, c, d = scan(v, h, xs) {length: t} with\n"
                   "  body(v: f32[8], h: f32[8] inout, x: f32[8] each, i: i32[] step)\n"
                   "   -> (h = next, a: f32[8] = v, b: i32[] = i, c: f32[8] = x, d: f32[8]) {\n next = mul(h, x)\n d = exp(v)\n }\n}"),
        "  (v: f32[8], h: f32[8], xs: f32[t, 8])\n"
        "  -> (y: f32[8], a: f32[t, 8] = broadcast_in_dim1, b: i32[t] = iota, c: f32[t, 8] = xs, d: f32[t, 8] = broadcast_in_dim) {\n"
        "d = exp(v) : f32[8]\n"
        "broadcast_in_dim = broadcast_in_dim(d) {dims: [1], shape: [t, 8]} : f32[t, 8]\n"
        "iota = iota() {dimension: 0, dtype: i32, shape: [t]} : i32[t]\n"
        "broadcast_in_dim1 = broadcast_in_dim(v) {dims: [1], shape: [t, 8]} : f32[t, 8]\n"
        "y = scan(h, xs) {length: t} : f32[8] with\n"
        "  body(h: f32[8] inout, x: f32[8] each) -> (h = next) {\n"
        "    next = mul(h, x) : f32[8]\n"
        "  }\n");
    const std::string counted = simplified("(n: i32[], v: f32[8]) -> (a: f32[9, 8]) {\n a = scan(n, v) {count: true, length: 9} with\n"
                                           "  body(v: f32[8]) -> (a: f32[8] = v) {\n }\n}");
    EXPECT_NE(counted.find("scan("), std::string::npos) << "later elements are 0\n" << counted;
}

TEST(transforms, simplify_makes_captures_of_equal_elements) {
    EXPECT_EQ(simplified("(v: f32[8], w: f32[8], h: f32[4, 8], k: i32[]) -> (y: f32[4, 8], n: i32[]) {\n"
                         " vs = broadcast_in_dim(v) {shape: [9, 8], dims: [1]}\n ws = broadcast_in_dim(w) {shape: [9, 4, 8], dims: [2]}\n"
                         " is = iota() {dtype: i32, shape: [9], dimension: 0}\n"
                         " y, n = scan(h, k, vs, ws, is) {length: 9} with\n"
                         "  body(h: f32[4, 8] inout, k: i32[] inout, v: f32[8] each, w: f32[4, 8] each, i: i32[] each)\n"
                         "   -> (h = next, k = sum) {\n b = broadcast_in_dim(v) {shape: [4, 8], dims: [1]}\n"
                         "   c = mul(h, b)\n next = add(c, w)\n sum = add(k, i)\n }\n}"),
              "y, n = scan(h, k, v, w) {length: 9} : f32[4, 8], i32[] with\n"
              "  body(h: f32[4, 8] inout, k: i32[] inout, v: f32[8], w: f32[8], i: i32[] step) -> (h = next, k = sum) {\n"
              "    broadcast_in_dim1 = broadcast_in_dim(w) {dims: [1], shape: [4, 8]} : f32[4, 8]\n"
              "    b = broadcast_in_dim(v) {dims: [1], shape: [4, 8]} : f32[4, 8]\n"
              "    c = mul(h, b) : f32[4, 8]\n"
              "    next = add(c, broadcast_in_dim1) : f32[4, 8]\n"
              "    sum = add(k, i) : i32[]\n"
              "  }\n");
}

TEST(transforms, simplify_moves_constants_into_regions) {
    EXPECT_EQ(
        simplified("(h: f32[8], g: f32[8], i: i32[]) -> (y: f32[8], z: f32[8]) {\n one = constant() {value: 1}\n"
                   " ones = broadcast_in_dim(one) {shape: [9, 8], dims: []}\n two = constant() {value: 2}\n"
                   " y = scan(h, two, ones) {length: 9} with\n"
                   "  body(h: f32[8] inout, two: f32[], x: f32[8] each) -> (h = next) {\n"
                   "   p = mul(h, x)\n s = broadcast_in_dim(two) {shape: [8], dims: []}\n next = mul(p, s)\n }\n"
                   " z = switch(i, g, one) with\n"
                   "  a(g: f32[8], one: f32[]) -> (z: f32[8]) {\n o = broadcast_in_dim(one) {shape: [8], dims: []}\n z = mul(g, o)\n },\n"
                   "  b(g: f32[8], one: f32[]) -> (z: f32[8]) {\n z = exp(g)\n }\n}"),
        "y = scan(h) {length: 9} : f32[8] with\n"
        "  body(h: f32[8] inout) -> (h = next) {\n"
        "    constant1 = constant() {dtype: f32, value: 2.0} : f32[]\n"
        "    s = broadcast_in_dim(constant1) {dims: [], shape: [8]} : f32[8]\n"
        "    next = mul(h, s) : f32[8]\n"
        "  }\n"
        "z = switch(i, g) : f32[8] with\n"
        "  a(g: f32[8]) -> (z: f32[8] = g) {\n"
        "  },\n"
        "  b(g: f32[8]) -> (z: f32[8]) {\n"
        "    z = exp(g) : f32[8]\n"
        "  }\n");
}

} // namespace scalide

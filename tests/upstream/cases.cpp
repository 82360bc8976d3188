#include "upstream/cases.h"
#include <limits>

namespace scalide {

namespace {

constexpr double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();

std::string unary(const std::string &node) { return "program p(x: f32[4] scaled) -> (y: f32[4] scaled) {\n" + node + "}\n"; }
std::string binary(const std::string &op) {
    return "program p(x: f32[2] scaled, z: f32[2] scaled) -> (y: f32[2] scaled) {\n  y = " + op + "(x, z) : f32[2]\n}\n";
}

const std::string logsumexp = "program p(x: f32[2, 4] scaled) -> (y: f32[2] scaled) {\n  y = logsumexp(x) {axes: [1]} : f32[2]\n}\n";
const std::string softmax = "program p(x: f32[2, 4] scaled) -> (y: f32[2, 4] scaled) {\n  y = softmax(x) {axes: [1]} : f32[2, 4]\n}\n";

/// x + exp(0), where zeros are known when the program is built.
const std::string exp_of_zeros = unary("  zero = constant() {value: 0, dtype: f32} : f32[]\n"
                                       "  zeros = broadcast_in_dim(zero) {shape: [4], dims: []} : f32[4]\n"
                                       "  nothing = mul(x, zeros) : f32[4]\n  ones = exp(nothing) : f32[4]\n  y = add(x, ones) : f32[4]\n");

const std::string with_static_zero = unary("  zero = constant() {value: 0, dtype: f32} : f32[]\n"
                                           "  zeros = broadcast_in_dim(zero) {shape: [4], dims: []} : f32[4]\n"
                                           "  y = max(x, zeros) : f32[4]\n");

/// Masking as it is written by hand.
const std::string masked = "program p(m: bool[4], x: f32[4] scaled) -> (y: f32[4] scaled) {\n"
                           "  least = constant() {value: -inf, dtype: f32} : f32[]\n"
                           "  leasts = broadcast_in_dim(least) {shape: [4], dims: []} : f32[4]\n"
                           "  y = select_n(m, x, leasts) : f32[4]\n}\n";

const std::string subnormal_literal = unary("  c = constant() {value: 7.34683969e-40, dtype: f32} : f32[]\n"
                                            "  cs = broadcast_in_dim(c) {shape: [4], dims: []} : f32[4]\n"
                                            "  y = mul(x, cs) : f32[4]\n");

/// The gradient of sum(y * y), y being x rounded to e4m3: 2 y, which shows that the cast took place.
const std::string cast_under_grad = "program loss(x: f32[4]) -> (l: f32[]) {\n"
                                    "  y = cast_on_forward(x) {dtype: f8_e4m3fn} : f32[4]\n"
                                    "  s = mul(y, y) : f32[4]\n  l = reduce_sum(s) {axes: [0]} : f32[]\n}\n"
                                    "program p(x: f32[4] scaled) -> (l: f32[] scaled, g: f32[4] scaled) {\n"
                                    "  l, g = value_and_grad(x) {program: loss, wrt: [x]} : f32[], f32[4]\n}\n";

const std::string long_dot = "program p(x: f16[2, 1024] scaled, z: f16[1024, 2] scaled) -> (y: f16[2, 2] scaled) {\n"
                             "  y = dot_general(x, z) {contract: [[1], [0]]} : f16[2, 2]\n}\n";

/// Ten additions of nothing.
std::string serial_additions() {
    std::string text = "program p(x: f32[2] scaled, z: f32[2] scaled) -> (y: f32[2] scaled) {\n  y0 = add(x, z) : f32[2]\n";
    for (int i = 1; i < 10; i++) text += "  y" + std::to_string(i) + " = add(y" + std::to_string(i - 1) + ", z) : f32[2]\n";
    return text + "  y = add(y9, z) : f32[2]\n}\n";
}

/// A first step of Adam; epsilon, and the squares of small gradients, are nothing in f16.
const std::string adam = R"(program p(w: f32[4] inout, m: f32[4] inout, v: f32[4] inout, g: f32[4]) -> (w = w1, m = m1, v = v1) {
  tenth = constant() {value: 0.1, dtype: f32} : f32[]
  rate = constant() {value: 0.001, dtype: f32} : f32[]
  epsilon = constant() {value: 1.0e-8, dtype: f32} : f32[]
  tenths = broadcast_in_dim(tenth) {shape: [4], dims: []} : f32[4]
  rates = broadcast_in_dim(rate) {shape: [4], dims: []} : f32[4]
  epsilons = broadcast_in_dim(epsilon) {shape: [4], dims: []} : f32[4]
  gm = sub(g, m) : f32[4]
  dm = mul(gm, tenths) : f32[4]
  m1 = add(m, dm) : f32[4]
  gg = mul(g, g) : f32[4]
  gv = sub(gg, v) : f32[4]
  dv = mul(gv, rates) : f32[4]
  v1 = add(v, dv) : f32[4]
  mh = div(m1, tenths) : f32[4]
  vh = div(v1, rates) : f32[4]
  root = sqrt(vh) : f32[4]
  below = add(root, epsilons) : f32[4]
  step = div(mh, below) : f32[4]
  dw = mul(step, rates) : f32[4]
  w1 = sub(w, dw) : f32[4]
})";

std::string converted(const std::string &dtype) {
    return "program p(x: f32[4]) -> (y: " + dtype + "[4]) {\n  y = convert_element_type(x) {dtype: " + dtype + "} : " + dtype + "[4]\n}\n";
}

const CaseArray zeros{std::vector<double>(8, 0), 4}, lost{{1, 2, 3, 4, 5, 6, 7, 8}, 0};
const double log_4 = 1.3862943611198906;

const std::vector<UpstreamCase> cases{
    {"logsumexp_of_unknown_zeros", "f32", "down", logsumexp, {zeros}, {{log_4, log_4}}, 1e-6},
    {"logsumexp_of_a_zero_scale", "f32", "down", logsumexp, {lost}, {{log_4, log_4}}, 1e-6},
    {"softmax_of_unknown_zeros", "f32", "down", softmax, {zeros}, {std::vector<double>(8, 0.25)}},
    {"softmax_of_a_zero_scale", "f32", "down", softmax, {lost}, {std::vector<double>(8, 0.25)}},
    {"exp_of_a_known_zero", "f32", "down", exp_of_zeros, {{{0, 1, 2, 3}, 2}}, {{1, 3, 5, 7}}},
    {"select_n_of_zero_scales",
     "f32",
     "down",
     "program p(m: bool[2], x: f32[2] scaled, z: f32[2] scaled) -> (y: f32[2] scaled) {\n  y = select_n(m, x, z) : f32[2]\n}\n",
     {{{0, 1}}, {{1, 2}, 0}, {{3, 4}, 0}},
     {{0, 0}}},
    {"max_with_a_zero_scale", "f32", "down", binary("max"), {{{-1, 2}, 4}, {{1.5, 4.5}, 0}}, {{0, 8}}},
    {"min_with_a_zero_scale", "f32", "down", binary("min"), {{{-1, 2}, 4}, {{1.5, 4.5}, 0}}, {{-4, 0}}},
    {"max_with_a_static_zero", "f32", "down", with_static_zero, {{{-1, 2, 0, -3}, 4}}, {{0, 8, 0, 0}}, 0, {4}},
    {"select_of_an_infinite_literal",
     "f32",
     "down",
     masked,
     {{{0, 1, 0, 1}}, {{1, 1.25, 1.625, 2}, 0x1p-20}},
     {{0x1p-20, -inf, 0x1.ap-20, -inf}},
     0,
     {0x1p-20}},
    {"sqrt_of_odd_exponents", "f32", "down", unary("  y = sqrt(x) : f32[4]\n"), {{{2, 8, 0.5, 0}, 2}}, {{2, 4, 1, 0}}, 0, {1}},
    {"argmax_at_a_zero_scale",
     "f32",
     "down",
     "program p(x: f32[4] scaled) -> (y: i32[]) {\n  y = argmax(x) {axis: 0} : i32[]\n}\n",
     {{{1, 5, 2, 3}, 0}},
     {{0}}},
    {"argmin_at_a_zero_scale",
     "f32",
     "down",
     "program p(x: f32[4] scaled) -> (y: i32[]) {\n  y = argmin(x) {axis: 0} : i32[]\n}\n",
     {{{1, 5, -2, 3}, 0}},
     {{0}}},
    {"sign_at_a_zero_scale", "f32", "down", unary("  y = sign(x) : f32[4]\n"), {{{1, -5, 0, 3}, 0}}, {{0, 0, 0, 0}}},
    {"division_by_a_zero_scale",
     "f32",
     "down",
     "program p(x: f32[3] scaled, z: f32[3] scaled) -> (y: f32[3]) {\n  q = div(x, z) : f32[3]\n  y = stop_scaling(q) : f32[3]\n}\n",
     {{{1, -1, 0}, 4}, {{1, 1, 1}, 0}},
     {{inf, -inf, nan}}},
    {"forward_casts_under_grad", "f32", "down", cast_under_grad, {{{1.03, 2.1, -1.06, 0.5}, 1}}, {{6.25}, {2, 4, -2, 1}}},
    {"f16_dot_overflow",
     "f32",
     "down",
     long_dot,
     {{std::vector<double>(2048, 16), 1}, {std::vector<double>(2048, 16), 1}},
     {std::vector<double>(4, 262144)},
     0,
     {32}},
    {"doubling_scales", "f32", "up", serial_additions(), {{{1, -2}, 4}, {{0, 0}, 0}}, {{4, -8}}, 0, {4}},
    {"f16_adam",
     "../../tests/upstream/f16_adam",
     "down",
     adam,
     {{{0.5, 0.25, -0.5, 1}}, {{0, 0, 0, 0}}, {{0, 0, 0, 0}}, {{1e-5, -2e-5, 0, 3e-6}, 1}},
     {{0.499, 0.251, -0.5, 0.999}, {1e-6, -2e-6, 0, 3e-7}, {1e-13, 4e-13, 0, 9e-15}},
     1e-3},
    {"f8_e5m2_double_rounding",
     "f32",
     "down",
     converted("f8_e5m2"),
     {{{1.125 + 0x1p-20, 1.125, 1.375 - 0x1p-20, 3}}},
     {{1.25, 1, 1.25, 3}}},
    {"f8_e4m3fn_double_rounding",
     "f32",
     "down",
     converted("f8_e4m3fn"),
     {{{1.0625 + 0x1p-20, 1.0625, 1.1875 - 0x1p-20, 3}}},
     {{1.125, 1, 1.125, 3}}},
    {"subnormal_literals", "f32", "down", subnormal_literal, {{{1, 2, -4, 0}, 0x1p100}}, {{0x1p-30, 0x1p-29, -0x1p-28, 0}}, 1e-14},
};

} // namespace

const std::vector<UpstreamCase> &upstream_cases() { return cases; }

} // namespace scalide

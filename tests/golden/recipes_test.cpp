#include "ir/text.h"
#include "judge.h"
#include "transforms/analysis/passes.h"
#include <algorithm>
#include <cmath>
#include <functional>
#include <gtest/gtest.h>
#include <iostream>

// FP8 recipes of Flax (flax.linen.fp8_ops) as programs of the operators of rules/scaling: scales, amax histories, quantization, and a dense
// layer that trains. Values must have the bits of Flax. Where Flax is wrong, or writes an infinity
// into a history, the right value is required.

namespace scalide::test {
namespace {

using Json = nlohmann::json;

/// Results of a case and what they must be. An element may be off by the `error` of the expected value. If `explained` is not empty, it has
/// the results with the mistake of upstream, and must be `right` instead of `got`.
struct Outcome {
    std::vector<Tensor> got, expected, right, explained = {};
};

/// Replaces each `$NAME` of a text.
std::string filled(std::string text, const std::map<std::string, std::string> &values) {
    for (const auto &[name, value] : values)
        for (size_t at; (at = text.find("$" + name)) != std::string::npos;) text.replace(at, name.size() + 1, value);
    return text;
}

ScaledProgram compiled(const Program &program) { return ScaledProgram(program, {}, {}, policy_of({{"rounding", "DOWN"}})); }

ScaledProgram program_of(const char *text, const std::map<std::string, std::string> &values) {
    return compiled(parse_program(filled(text, values), "recipes"));
}

Tensor scalar(double value) { return {{Dtype::f32, {}, {value}}, std::nullopt}; }

/// One array of several, along the first axis.
Tensor slice_of(const Tensor &arrays, int64_t index) {
    const std::vector<int64_t> &shape = arrays.data.shape;
    const auto size = static_cast<int64_t>(arrays.data.data.size()) / shape[0];
    const auto first = arrays.data.data.begin() + index * size;
    return {{arrays.data.dtype, {shape.begin() + 1, shape.end()}, {first, first + size}}, std::nullopt};
}

Tensor stacked(const std::vector<Tensor> &arrays, const std::vector<int64_t> &shape) {
    Tensor whole{{arrays[0].data.dtype, shape, {}}, std::nullopt};
    for (const Tensor &array : arrays) whole.data.data.insert(whole.data.data.end(), array.data.data.begin(), array.data.data.end());
    return whole;
}

/// The format of a case: `format` of its attributes, or a part of its name.
std::string format_of_case(const Json &entry) {
    if (entry["attrs"].contains("format")) return entry["attrs"]["format"];
    const std::string name = entry["name"];
    const size_t first = name.find('.') + 1;
    return name.substr(first, name.find('.', first) - first);
}

/// Scales below the normal numbers of f32 are 2^-126: Flax flushes them to 0, and the formula of fp8layers gives a number that no f32
/// holds.
constexpr double smallest_scale = 0x1p-126;

constexpr const char *scale_text = R"(
program scale(previous: f32[], history: f32[1]) -> (scale: f32[]) {
  scale = delayed_scale(previous, history) {dtype: $F, margin: $M, rounding: $R}
})";

Outcome compute_scale(const GoldenSuite &suite, const Json &entry) {
    const Json &attributes = entry["attrs"];
    const std::string rounding = attributes["algo"] == "exact" ? "none" : "up";
    const ScaledProgram program =
        program_of(scale_text, {{"F", format_of_case(entry)}, {"M", attributes["margin"].dump()}, {"R", rounding}});
    const Tensor amax = read_tensor(suite, entry["inputs"][0]);
    std::vector<Tensor> scales;
    for (const double value : amax.data.data)
        scales.push_back(program.run({scalar(attributes["prev_scale"]), {{Dtype::f32, {1}, {value}}, std::nullopt}})[0]);
    Tensor expected = read_tensors(suite, entry["outputs"])[0];
    Tensor right = entry.contains("correct") ? read_tensors(suite, entry["correct"])[0] : expected;
    for (Tensor *scale : {&expected, &right})
        for (double &value : scale->data.data) value = std::max(value, smallest_scale);
    return {{stacked(scales, amax.data.shape)}, {expected}, {right}};
}

/// x / s, rounded to the dtype of x and then once to the format. Infinity becomes the largest number.
Tensor rounded_quotient(const Tensor &x, double s, Dtype format) {
    const Dtype dtype = x.data.dtype;
    const double divisor = round_to(dtype, s, Overflow::format);
    Tensor q{{format, x.data.shape, {}}, std::nullopt};
    for (const double value : x.data.data)
        q.data.data.push_back(round_to(format, round_to(dtype, value / divisor, Overflow::format), Overflow::clip));
    return q;
}

/// Flax takes the scale of a step from the history before it. The first step has no history and keeps the scale.
constexpr const char *history_text = R"(
program history(x: f32[m, n], history: f32[$L], s: f32[]) -> (scale: f32[], new: f32[$L], q: $F[m, n], before: $F[m, n]) {
  scale = delayed_scale(s, history) {dtype: $F}
  new = update_amax_history(history, x)
  q = quantize(x, scale) {dtype: $F}
  before = quantize(x, s) {dtype: $F}
})";

/// The scales and histories after each step, by the formulas. Flax keeps an infinity in the history, and with it the scale. Here the amax
/// of an array that is not finite is 0.
struct ScalesAndHistories {
    std::vector<Tensor> scales, histories;
};

ScalesAndHistories right_scales(const Tensor &x, float scale, size_t length, Dtype format) {
    const auto largest = static_cast<float>(decode(format_of(format), format_of(format).max_code));
    std::vector<double> history(length);
    ScalesAndHistories all;
    for (int64_t step = 0; step < x.data.shape[0]; step++) {
        const auto amax = static_cast<float>(std::ranges::max(history));
        if (amax > 0) scale = std::max(1 / (largest / amax), static_cast<float>(smallest_scale));
        std::ranges::rotate(history, history.begin() + 1);
        history[0] = 0;
        const std::vector<double> values = slice_of(x, step).data.data;
        if (std::ranges::all_of(values, [](double value) { return std::isfinite(value); }))
            for (const double value : values) history[0] = std::max(history[0], std::fabs(value));
        all.scales.push_back(scalar(scale));
        all.histories.push_back({{Dtype::f32, {static_cast<int64_t>(length)}, history}, std::nullopt});
    }
    return all;
}

Outcome amax_history(const GoldenSuite &suite, const Json &entry) {
    const Json &attributes = entry["attrs"];
    const ScaledProgram program = program_of(history_text, {{"F", format_of_case(entry)}, {"L", attributes["history_len"].dump()}});
    const Tensor x = read_tensor(suite, entry["inputs"][0]);
    const std::vector<Tensor> expected = read_tensors(suite, entry["outputs"]);
    const Dtype format = expected[2].data.dtype;
    const ScalesAndHistories right = right_scales(x, attributes["init_scale"], attributes["history_len"], format);
    std::vector<std::vector<Tensor>> made(expected.size());
    std::vector<Tensor> codes, codes_before;
    Tensor scale = scalar(attributes["init_scale"]), history{{Dtype::f32, {attributes["history_len"]}, {}}, std::nullopt};
    double right_before = attributes["init_scale"];
    history.data.data.resize(attributes["history_len"].get<size_t>());
    for (int64_t step = 0; step < x.data.shape[0]; step++) {
        const std::vector<Tensor> results = program.run({slice_of(x, step), history, scale});
        for (size_t i = 0; i < results.size(); i++) made[i].push_back(results[i]);
        const double right_after = right.scales[static_cast<size_t>(step)].data.data[0];
        codes.push_back(rounded_quotient(slice_of(x, step), right_after, format));
        codes_before.push_back(rounded_quotient(slice_of(x, step), right_before, format));
        scale = results[0], history = results[1], right_before = right_after;
    }
    const std::vector<int64_t> &shape = x.data.shape;
    const Tensor scales = stacked(right.scales, expected[0].data.shape), histories = stacked(right.histories, expected[1].data.shape);
    Outcome outcome{{}, expected, {scales, histories, stacked(codes, shape), stacked(codes_before, shape)}};
    for (size_t i = 0; i < made.size(); i++) outcome.got.push_back(stacked(made[i], expected[i].data.shape));
    return outcome;
}

Tensor multiplied(const Tensor &q, double s, Dtype dtype) {
    Tensor x{{dtype, q.data.shape, {}}, std::nullopt};
    for (const double value : q.data.data) x.data.data.push_back(round_to(dtype, value * round_to(dtype, s)));
    return x;
}

constexpr const char *quantize_text = R"(
program quantize(x: $T[n], s: f32[]) -> (q: $F[n], dq: $T[n], qdq: $T[n]) {
  q = quantize(x, s) {dtype: $F, compute: $T}
  dq = dequantize(q, s) {dtype: $T, compute: $T}
  qdq = quantize_dequantize(x, s) {dtype: $F, compute: $T}
})";

Outcome quantize_dequantize(const GoldenSuite &suite, const Json &entry) {
    const std::string format = format_of_case(entry);
    const ScaledProgram program = program_of(quantize_text, {{"F", format}, {"T", entry["attrs"]["compute_dtype"]}});
    const std::vector<Tensor> inputs = read_tensors(suite, entry["inputs"]);
    const double s = inputs[1].data.data[0];
    const Tensor q = rounded_quotient(inputs[0], s, *parse_dtype(format)), dq = multiplied(q, s, inputs[0].data.dtype);
    return {program.run({inputs[0], scalar(s)}), read_tensors(suite, entry["outputs"]), {q, dq, dq}};
}

/// in_qdq rounds its operand, out_qdq the gradient. The scale and the history that Flax passes as gradients are results.
constexpr const char *straight_through_text = R"(
program straight(x: $T[m, n], g: $T[m, n], s: f32[], history: f32[$L]) -> (y: $T[m, n], scale: f32[], new: f32[$L]) {
  scale = delayed_scale(s, history) {dtype: $F}
  y = $Q(x, scale) {dtype: $F, compute: $T}
  new = update_amax_history(history, $X)
})";

Outcome straight_through(const GoldenSuite &suite, const Json &entry) {
    const bool is_forward = entry["op"] == "in_qdq";
    const std::string text = filled(straight_through_text, {{"F", format_of_case(entry)},
                                                            {"T", entry["attrs"]["compute_dtype"]},
                                                            {"L", entry["inputs"][3]["shape"][0].dump()},
                                                            {"Q", is_forward ? "quantize_dequantize" : "quantize_dequantize_grad"},
                                                            {"X", is_forward ? "x" : "g"}});
    Program program = infer_types(parse_program(text, "recipes"), rules());
    const ValueId gradient =
        append_vjp(program, rules(), {program.results[0].value}, {program.arguments[1].value}, {program.arguments[0].value})[0];
    program.results.insert(program.results.begin() + 1, {"dx", gradient});
    std::vector<Tensor> inputs = read_tensors(suite, entry["inputs"]);
    inputs[2].data.shape = {};
    Outcome outcome{compiled(program).run(inputs), read_tensors(suite, entry["outputs"]), {}};
    outcome.expected[2].data.shape = {};
    outcome.right = outcome.expected;
    const double scale = outcome.expected[2].data.data[0];
    const Tensor codes = rounded_quotient(inputs[is_forward ? 0 : 1], scale, *parse_dtype(format_of_case(entry)));
    outcome.right[is_forward ? 0 : 1] = multiplied(codes, scale, inputs[0].data.dtype);
    return outcome;
}

/// One step of a dense layer whose operands and output gradient are quantized, with SGD.
constexpr const char *dense_text = R"(
program dense(x: $T[m, k], t: f32[m, n], input_history: f32[$L], input_scale: f32[], kernel_history: f32[$L], kernel_scale: f32[],
              grad_history: f32[$L], grad_scale: f32[], bias: f32[n], kernel: f32[k, n])
    -> (y: $T[m, n], loss: f32[], bias_grad: f32[n], kernel_grad: f32[k, n], new_input_history: f32[$L], new_input_scale: f32[],
        new_kernel_history: f32[$L], new_kernel_scale: f32[], new_grad_history: f32[$L], new_grad_scale: f32[], new_bias: f32[n],
        new_kernel: f32[k, n]) {
  new_input_scale = delayed_scale(input_scale, input_history) {dtype: f8_e4m3fn}
  new_input_history = update_amax_history(input_history, x)
$Qx
  w = convert_element_type(kernel) {dtype: $T}
  new_kernel_scale = delayed_scale(kernel_scale, kernel_history) {dtype: f8_e4m3fn}
  new_kernel_history = update_amax_history(kernel_history, w)
$Qw
  product = dot_general(xq, wq) {contract: [[1], [0]]}
  b = convert_element_type(bias) {dtype: $T}
  row = broadcast_in_dim(b) {shape: [m, n], dims: [1]}
  y = add(product, row)
  wide = convert_element_type(y) {dtype: f32}
  d = sub(wide, t)
  squares = mul(d, d)
  sum = reduce_sum(squares) {axes: [0, 1]}
  count = size() {extent: m * n, dtype: f32}
  loss = div(sum, count)
  twice = mul(2, d)
  part = div(1, count)
  cotangent = mul(twice, part)
  g = convert_element_type(cotangent) {dtype: $T}
  new_grad_scale = delayed_scale(grad_scale, grad_history) {dtype: f8_e5m2}
  new_grad_history = update_amax_history(grad_history, g)
$Qg
  weighted = dot_general(xq, gq) {contract: [[0], [0]]}
  kernel_grad = convert_element_type(weighted) {dtype: f32}
  total = reduce_sum(g) {axes: [0]}
  bias_grad = convert_element_type(total) {dtype: f32}
  kernel_step = mul($R, kernel_grad)
  new_kernel = sub(kernel, kernel_step)
  bias_step = mul($R, bias_grad)
  new_bias = sub(bias, bias_step)
})";

/// The lines that quantize an array and dequantize it to `<array>q`. XLA on a CPU converts f32 to FP8 through f16 and so rounds twice.
std::string quantized(const std::string &array, const std::string &scale, const std::string &format, bool as_xla) {
    static const char *const once = "  $Xc = quantize($X, $S) {dtype: $F, compute: $T}\n";
    static const char *const twice =
        "  $X_quotient = div($X, $S)\n  $X_half = convert_element_type($X_quotient) {dtype: f16, overflow: saturate}\n"
        "  $X_wide = convert_element_type($X_half) {dtype: f32}\n"
        "  $Xc = convert_element_type($X_wide) {dtype: $F, overflow: saturate}\n";
    const std::string text = std::string(as_xla ? twice : once) + "  $Xq = dequantize($Xc, $S) {dtype: $T, compute: $T}";
    return filled(text, {{"X", array}, {"S", scale}, {"F", format}});
}

std::string dense_program(const Json &entry, bool as_xla) {
    const std::string text = filled(dense_text, {{"Qx", quantized("x", "new_input_scale", "f8_e4m3fn", as_xla)},
                                                 {"Qw", quantized("w", "new_kernel_scale", "f8_e4m3fn", as_xla)},
                                                 {"Qg", quantized("g", "new_grad_scale", "f8_e5m2", as_xla)}});
    const Json &attributes = entry["attrs"];
    return filled(text, {{"T", attributes["dtype"]}, {"R", attributes["lr"].dump()}, {"L", entry["inputs"][0]["shape"][0].dump()}});
}

/// Arrays of the state without the axis of extent 1 that Flax gives scales.
std::vector<Tensor> state_of(const GoldenSuite &suite, const Json &descriptors) {
    std::vector<Tensor> state = read_tensors(suite, descriptors);
    for (Tensor &tensor : state)
        if (tensor.data.shape == std::vector<int64_t>{1}) tensor.data.shape = {};
    return state;
}

/// Sums of at most 32 products, in another order. The largest element of an array bounds the terms of each. A sum in bf16 may differ by a
/// rounding, and that may change the FP8 code of a gradient.
void allow_reordering(Tensor &expected, Dtype dtype) {
    double largest = 0;
    for (const double value : expected.data.data) largest = std::max(largest, std::fabs(value));
    const double unit = std::ldexp(largest, -format_of(dtype).mantissa_bits);
    expected.data.error.assign(expected.data.data.size(), dtype == Dtype::f32 ? 32 * unit : 8 * unit);
}

/// The results of all steps. Each step starts from the state that the step before left.
std::vector<Tensor> train_dense(const GoldenSuite &suite, const Json &entry, bool as_xla) {
    const ScaledProgram program = compiled(parse_program(dense_program(entry, as_xla), "recipes"));
    std::vector<Tensor> state = state_of(suite, entry["inputs"]), made;
    for (const Json &step : entry["steps"]) {
        std::vector<Tensor> inputs{read_tensor(suite, step["x"]), read_tensor(suite, step["t"])};
        inputs.insert(inputs.end(), state.begin(), state.end());
        const std::vector<Tensor> results = program.run(inputs);
        state.assign(results.begin() + 4, results.end());
        made.insert(made.end(), results.begin(), results.end());
    }
    return made;
}

Outcome fp8_dense_train(const GoldenSuite &suite, const Json &entry) {
    const Dtype dtype = *parse_dtype(entry["attrs"]["dtype"].get<std::string>());
    Outcome outcome{train_dense(suite, entry, false), {}, {}};
    if (dtype == Dtype::f32) outcome.explained = train_dense(suite, entry, true);
    for (const Json &step : entry["steps"]) {
        std::vector<Tensor> expected{read_tensor(suite, step["y"]), read_tensor(suite, step["loss"])};
        for (const Tensor &gradient : read_tensors(suite, step["grad_params"])) expected.push_back(gradient);
        for (const Tensor &tensor : state_of(suite, step["state"])) expected.push_back(tensor);
        for (Tensor &tensor : expected) allow_reordering(tensor, dtype);
        outcome.expected.insert(outcome.expected.end(), expected.begin(), expected.end());
    }
    outcome.right = outcome.expected;
    return outcome;
}

const std::map<std::string, std::function<Outcome(const GoldenSuite &, const Json &)>> runs{
    {"compute_scale_flax", compute_scale}, {"compute_scale_pow2_floor", compute_scale},
    {"amax_history", amax_history},        {"quantize_dequantize", quantize_dequantize},
    {"in_qdq", straight_through},          {"out_qdq", straight_through},
    {"fp8_dense_train", fp8_dense_train},
};

std::string first_difference(const std::vector<Tensor> &got, const std::vector<Tensor> &expected) {
    if (got.size() != expected.size()) return "another number of results";
    for (size_t i = 0; i < got.size(); i++) {
        const std::string words = difference(got[i], expected[i], expected[i], 0);
        if (!words.empty()) return "result " + std::to_string(i) + ", " + words;
    }
    return "";
}

TEST(recipes, all_cases) {
    const auto suite = load_golden("recipes");
    const Deviations deviations("recipes", suite.index);
    for (const Json &entry : suite.index["cases"]) {
        SCOPED_TRACE(entry["name"].get<std::string>());
        const Outcome outcome = runs.at(entry["op"])(suite, entry);
        const std::vector<Tensor> &explained = outcome.explained.empty() ? outcome.got : outcome.explained;
        deviations.judge(entry, first_difference(outcome.got, outcome.expected), first_difference(explained, outcome.right));
    }
    std::cout << "recipes: " << suite.index["cases"].size() << " cases, " << deviations.count() << " deviations\n";
}

} // namespace
} // namespace scalide::test

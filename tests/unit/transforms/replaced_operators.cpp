// assign_numerics: rows that replace an operator, and rows that give a scale.
#include "interpret/interpret.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "support.h"
#include "transforms/analysis/passes.h"
#include "transforms/numerics/numerics_report.h"
#include "transforms/pipeline.h"
#include <cmath>
#include <gtest/gtest.h>
#include <random>

namespace scalide {

namespace {

Policy policy_of(const std::string &rows, const std::string &settings = "") {
    return parse_policy("{policy: p, " + settings + "rules: [\n" + rows + "]}", "p.yaml");
}

Program assigned(const std::string &text, const Policy &policy, PolicyDecisions *decisions = nullptr) {
    const Program program = assign_numerics(typed(text), rules(), policy, decisions);
    verify(program, "assign_numerics");
    return program;
}

const std::string mxfp8 = "{op: dot_general, operands: any, replace: {scaled_dot_general: {block: 32, scales: f8_e8m0fnu}}}";
const std::string by_four = "{op: dot_general, operands: any, replace: {scaled_dot_general: {block: 4, scales: f8_e8m0fnu}}}";

const std::string product = "(x: f32[2, 6], w: f32[6, 3]) -> (y: f32[2, 3]) {\n y = dot_general(x, w) {contract: [[1], [0]]}\n}";

/// Two layers and the product of a gradient.
const std::string layers = "(x: f32[8, 8], w: f32[8, 8], v: f32[8, 8]) -> (y: f32[8, 8], g: f32[8, 8]) {\n"
                           " scope \"body\" {\n a = dot_general(x, w) {contract: [[1], [0]]}\n }\n"
                           " scope \"head\" {\n y = dot_general(a, v) {contract: [[1], [0]]}\n }\n"
                           " c = exp(y) : f32[8, 8] cotangent\n g = dot_general(c, v) {contract: [[1], [1]]} : f32[8, 8] cotangent\n}";

size_t count(const std::string &text, const std::string &word) {
    size_t found = 0;
    for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) found++;
    return found;
}

/// Random numbers of magnitudes from 2^-20 to 2^20.
Array drawn(const Type &type, std::mt19937 &random) {
    Array array{type.dtype, {}, {}};
    int64_t elements = 1;
    for (const Extent &extent : type.shape) array.shape.push_back(extent.value()), elements *= extent.value();
    std::normal_distribution<double> normal;
    for (int64_t i = 0; i < elements; i++)
        array.data.push_back(round_to(Dtype::f32, std::ldexp(normal(random), static_cast<int>(random() % 41) - 20)));
    return array;
}

/// A row of `k` numbers `stride` apart as MXFP8 keeps it: the largest magnitude of each block in (224, 448] of e4m3, or (28672, 57344] of
/// e5m2, times a power of two.
std::vector<double> in_blocks(const double *first, int64_t k, int64_t stride, int64_t block, Dtype dtype) {
    const double largest = dtype == Dtype::f8_e5m2 ? 57344 : 448;
    std::vector<double> row;
    for (int64_t start = 0; start < k; start += block) {
        double top = 0;
        for (int64_t i = start; i < std::min(k, start + block); i++) top = std::max(top, std::fabs(first[i * stride]));
        double scale = 1;
        while (top > 0 && top / scale > largest) scale *= 2;
        while (top > 0 && top / scale <= largest / 2) scale /= 2;
        for (int64_t i = start; i < std::min(k, start + block); i++) row.push_back(round_to(dtype, first[i * stride] / scale) * scale);
    }
    return row;
}

} // namespace

TEST(replaced_operators, stand_where_the_others_stood) {
    EXPECT_EQ(body(assigned(product, policy_of(mxfp8))),
              "y = scaled_dot_general(x, w) {batch: [[], []], block: 32, contract: [[1], [0]], lhs_dtype: f8_e4m3fn, lhs_rows: 1, "
              "preferred: f32, rhs_dtype: f8_e4m3fn, rhs_rows: 1, rounding: none, scales: f8_e8m0fnu} : f32[2, 3]\n");
}

TEST(replaced_operators, round_by_blocks_along_the_sum) {
    const std::vector<std::pair<std::string, Dtype>> rows = {
        {by_four, Dtype::f8_e4m3fn},
        {"{op: dot_general, operands: any, replace: {scaled_dot_general: {block: 4, scales: f8_e8m0fnu, lhs_dtype: f8_e5m2}}}",
         Dtype::f8_e5m2}};
    for (const auto &[row, lhs_dtype] : rows) {
        const Program made = expand(assigned(product, policy_of(row)), rules());
        std::mt19937 random(3);
        const Array x = drawn(made.type(made.arguments[0].value), random), w = drawn(made.type(made.arguments[1].value), random);
        const std::vector<double> got = interpret(made, {x, w}, rules(), Mode::stored)[0].data;
        for (size_t i = 0; i < 2; i++)
            for (size_t j = 0; j < 3; j++) {
                const std::vector<double> a = in_blocks(&x.data[i * 6], 6, 1, 4, lhs_dtype);
                const std::vector<double> b = in_blocks(&w.data[j], 6, 3, 4, Dtype::f8_e4m3fn);
                double sum = 0, magnitudes = 0;
                for (size_t k = 0; k < 6; k++) sum += a[k] * b[k], magnitudes += std::fabs(a[k] * b[k]);
                EXPECT_NEAR(got[i * 3 + j], sum, 6 * std::ldexp(magnitudes, -24)) << row << " " << i << ", " << j;
            }
    }
}

TEST(replaced_operators, take_batches_and_several_summed_axes) {
    const std::string text = "(x: f32[2, 5, 3, 4], w: f32[4, 2, 3]) -> (y: f32[2, 5]) {\n"
                             " y = dot_general(x, w) {contract: [[3, 2], [0, 2]], batch: [[0], [1]]}\n}";
    const Program made = expand(assigned(text, policy_of(by_four)), rules()), plain = expand(typed(text), rules());
    std::mt19937 random(5);
    std::vector<Array> inputs;
    for (const Argument &argument : made.arguments) inputs.push_back(drawn(made.type(argument.value), random));
    for (Array &input : inputs)
        for (double &value : input.data) value = std::ldexp(std::trunc(std::remainder(value, 8)), -1); // e4m3 holds these
    EXPECT_EQ(interpret(made, inputs, rules(), Mode::stored)[0].data, interpret(plain, inputs, rules(), Mode::stored)[0].data);
}

/// The codes of a weight with one scale, times rows that have a scale each.
TEST(replaced_operators, round_by_rows_beside_a_weight_with_a_scale) {
    const Policy policy = load_policy(std::string(SCALIDE_RULES_DIR) + "/policies/f8_weights.yaml");
    CompileOptions options;
    options.policy = policy;
    const auto made = [&](const std::string &text, const std::vector<Array> &inputs) {
        const Program program = to_base_operators(parse_program("program p" + text, "p.scl"), rules(), options);
        return std::pair(program, interpret(program, inputs, rules(), Mode::stored)[0].data);
    };
    const Array w{Dtype::f8_e4m3fn, {4, 2}, {1, -2, 448, 3, 0.5, 16, -7, 9}}, scale{Dtype::f32, {}, {0.25}};
    std::vector<double> x = {1, 2.5, -3, 0.1, 3, 1000, 2, 4, 0, 0, 0, 0};
    const auto [program, before] =
        made("(x: f32[3, 4], w: f32[4, 2]) -> (y: f32[3, 2]) {\n y = dot_general(x, w) {contract: [[1], [0]]}\n}",
             {{Dtype::f32, {3, 4}, x}, w, scale});
    const size_t products = count(to_string(program), "= dot_general(");
    EXPECT_EQ(products, 1u);
    const auto product = std::ranges::find(program.nodes, "dot_general", &Node::op);
    for (const ValueId operand : product->operands) {
        const auto maker = std::ranges::find(program.nodes, std::vector{operand}, &Node::results);
        EXPECT_EQ(program.type(maker->operands[0]).dtype, Dtype::f8_e4m3fn) << "codes: " << program.value_name(operand);
    }
    EXPECT_NEAR(before[0], 0.25 * (1 + 2.5 * 448 - 3 * 0.5 - 0.1 * 7), 0.06 * 280);
    EXPECT_EQ(before[4], 0);
    for (size_t i = 0; i < 4; i++) x[i] *= 0x1p20;
    const auto [same, after] = made("(x: f32[3, 4], w: f32[4, 2]) -> (y: f32[3, 2]) {\n y = dot_general(x, w) {contract: [[1], [0]]}\n}",
                                    {{Dtype::f32, {3, 4}, x}, w, scale});
    for (size_t i = 0; i < 2; i++) EXPECT_EQ(after[i], before[i] * 0x1p20) << "a row has all bits at any size";
    for (size_t i = 2; i < 6; i++) EXPECT_EQ(after[i], before[i]) << "a row does not change its neighbours";
    const std::string turned = "(w: f32[2, 4], x: f32[b, 4]) -> (y: f32[2, b]) {\n y = dot_general(w, x) {contract: [[1], [1]]}\n}";
    EXPECT_NE(body(assigned(turned, policy)).find("column_scaled_dot_general"), std::string::npos);
    const std::string attention = "(q: f32[b, 4], k: f32[b, 4]) -> (y: f32[b, b]) {\n h = tanh(q)\n t = tanh(k)\n"
                                  " y = dot_general(h, t) {contract: [[1], [1]]}\n}";
    EXPECT_EQ(body(assigned(attention, policy)).find("scaled_dot_general"), std::string::npos) << "no weight";
    const std::string image = "(x: f32[b, 3, 8, 8], w: f32[4, 3, 3, 3]) -> (y: f32[b, 4, 6, 6]) {\n y = conv_general_dilated(x, w)\n}";
    EXPECT_NE(body(assigned(image, policy)).find("row_scaled_conv"), std::string::npos);
}

TEST(replaced_operators, are_chosen_by_operands_and_scope) {
    const auto text = [](const std::string &rows) { return body(assigned(layers, policy_of(rows))); };
    EXPECT_EQ(count(text(by_four), "scaled_dot_general("), 3u);
    const std::string replace = "replace: {scaled_dot_general: {block: 4}}}";
    EXPECT_EQ(count(text("{op: dot_general, operands: primal, " + replace), "scaled_dot_general("), 2u);
    EXPECT_NE(text("{op: dot_general, operands: [cotangent, weight], " + replace).find("g = scaled_dot_general(c, v)"), std::string::npos);
    EXPECT_EQ(count(text("{op: dot_general, scope: \"head/**\", operands: any},\n" + by_four), "scaled_dot_general("), 2u);
}

TEST(replaced_operators, are_what_other_rows_see) {
    const std::string rows = by_four + ",\n{op: dot_general, operand: any, insert: [{convert: bf16}], optional: true},\n"
                                       "{op: scaled_dot_general, operand: rhs, insert: [{convert: f16}]}";
    const std::string text = body(assigned(product, policy_of(rows)));
    EXPECT_EQ(text.find("bf16"), std::string::npos) << text;
    EXPECT_NE(text.find("w.f16"), std::string::npos) << text;
}

TEST(replaced_operators, tell_whose_requirement_does_not_hold) {
    const std::string text = "(x: f32[b, 4], y: f32[b, 4]) -> (z: f32[4, 4]) {\n z = dot_general(x, y) {contract: [[0], [0]]}\n}";
    EXPECT_EQ(error_of([&] { assigned(text, policy_of(mxfp8)); }),
              "t.scl:2:2: scaled_dot_general: blocks of 32 along this axis: the extent must be a number or a multiple such as 32*b, "
              "got b. Declare the extent as a multiple, such as 32*b. p.yaml:2 replaces dot_general with it");
    const std::string multiple = "(x: f32[32*b, 4], y: f32[32*b, 4]) -> (z: f32[4, 4]) {\n z = dot_general(x, y) {contract: [[0], [0]]}\n}";
    EXPECT_EQ(error_of([&] { expand(assigned(multiple, policy_of(mxfp8)), rules()); }), "no error");
}

TEST(replaced_operators, tell_what_matches_nothing) {
    EXPECT_EQ(error_of([&] { assigned(product, policy_of("{op: dot_general, operands: [weight, cotangent]}")); }),
              "p.yaml:2: this rule matches nothing: program 'p' has no operator with float operands 'weight x cotangent'. "
              "Operands: activation x weight. If the rule may match nothing, add 'optional: true'");
    EXPECT_EQ(
        error_of([&] { assigned(product, policy_of(by_four + ",\n{op: dot_general, operands: primal}")); }),
        "p.yaml:3: this rule has no effect: line 2 already matches everything that it matches. Move it above line 2, delete it, or add "
        "'optional: true'");
}

TEST(replaced_operators, are_reported) {
    PolicyDecisions decisions;
    const std::string rows = "{op: dot_general, scope: \"head/**\", operands: any},\n" + by_four;
    const Program made = assigned(layers, policy_of(rows), &decisions);
    std::vector<std::string> told;
    for (const NumericsDecision &decision : decisions.sites)
        if (decision.place == PolicyRule::Place::node)
            told.push_back(decision.tensor + " " + decision.use + " " + std::string(to_string(decision.stored)) + " by " +
                           decision.scale.block + " in " + std::string(to_string(decision.scale.format)) +
                           (decision.is_unsafe() ? "!" : ""));
    EXPECT_EQ(told, (std::vector<std::string>{
                        "x scaled_dot_general.lhs f8_e4m3fn by 4 in f8_e8m0fnu", "w scaled_dot_general.rhs f8_e4m3fn by 4 in f8_e8m0fnu",
                        "c scaled_dot_general.lhs f8_e4m3fn by 4 in f8_e8m0fnu", "v scaled_dot_general.rhs f8_e4m3fn by 4 in f8_e8m0fnu"}));
    const ProductFormats formats = product_formats(made, rules(), decisions);
    EXPECT_EQ(formats.products, 3u);
    EXPECT_EQ(formats.narrow, (std::map<std::string, size_t>{{"f8", 2}}));
    EXPECT_EQ(formats.blocks, (std::map<std::string, size_t>{{"4", 2}}));
    EXPECT_EQ(formats.unscaled + formats.own + formats.unsafe_conversions, 0u);
}

/// What is told of each matmul: operands by format, rule and reason.
std::vector<std::string> told(const std::string &rows) {
    PolicyDecisions decisions;
    const Program made = assigned(layers, policy_of(rows), &decisions);
    std::vector<std::string> lines;
    for (const MatmulDecision &matmul : decisions.matmuls) {
        std::string line = matmul.tensor;
        for (const OperandDecision &operand : matmul.operands)
            line += " | " + operand.tensor + " " + std::string(to_string(operand.stored)) + " " + std::to_string(operand.row.line) + " " +
                    operand.why;
        lines.push_back(line + (matmul.keeping_row() ? " | kept" : ""));
    }
    return lines;
}

TEST(matmuls, are_told_with_the_reason) {
    using Lines = std::vector<std::string>;
    const std::string bf16 = "{op: dot_general, operand: primal, scope: \"head/**\", store: bf16}";
    EXPECT_EQ(told("{op: dot_general, operand: any, layer: first},\n" + bf16),
              (Lines{"a | x f32 2 operand: any, layer: first | w f32 2 operand: any, layer: first | kept",
                     "y | a bf16 3 operand: primal, scope: head/** | v bf16 3 operand: primal, scope: head/**",
                     "g | c f32 0 no rule matches | v f32 0 no rule matches, the nearest needs scope: head/**"}));
    EXPECT_EQ(
        told("{op: dot_general, operand: any, size_below: 64, store: bf16, optional: true}"),
        (Lines{
            "a | x f32 0 no rule matches, the nearest needs size_below: 64 | w f32 0 no rule matches, the nearest needs size_below: 64",
            "y | a f32 0 no rule matches, the nearest needs size_below: 64 | v f32 0 no rule matches, the nearest needs size_below: 64",
            "g | c f32 0 no rule matches, the nearest needs size_below: 64 | v f32 0 no rule matches, the nearest needs size_below: 64"}));
    EXPECT_EQ(told("{keep: w},\n{op: dot_general, operands: [cotangent, any]},\n" + by_four),
              (Lines{"a | x f32 2 keep: w | w f32 2 keep: w | kept", "y | a f8_e4m3fn 4 operands: any | v f8_e4m3fn 4 operands: any",
                     "g | c f32 3 operands: cotangent x any | v f32 3 operands: cotangent x any | kept"}));
}

TEST(given_scales, are_those_of_an_insertion) {
    const auto both = [](const std::string &text, const std::string &scale, const std::string &insert) {
        EXPECT_EQ(to_string(assigned(text, policy_of(scale))), to_string(assigned(text, policy_of(insert))));
    };
    both(product, "{op: dot_general, operand: any, scale: {by: max}, store: f8_e4m3fn}",
         "{op: dot_general, operand: any, insert: [{dynamic_rescale: {norm: max, to: 224}}, {convert: f8_e4m3fn}]}");
    both(product, "{op: dot_general, result: out, scale: {by: l2, to: 4}, store: f8_e5m2}",
         "{op: dot_general, result: out, insert: [{dynamic_rescale: {norm: l2, to: 4}}], store: f8_e5m2}");
    both(product, "{result: y, scale: {by: max}, store: f8_e4m3fn}",
         "{result: y, insert: [{dynamic_rescale: {norm: max, to: 224}}], store: f8_e4m3fn, scaled: true}");
    const std::string state = "(x: f32[2], w: f32[2] inout) -> (w = v) {\n v = add(w, x)\n}";
    const std::string argument = "{argument: w, store: f16, scaled: true},\n";
    both(state, argument + "{result: w, scale: {by: max, to: 1}, store: f16}",
         argument + "{result: w, insert: [{dynamic_rescale: {norm: max, to: 1}}], store: f16}");
}

TEST(given_scales, of_arguments_need_operators_that_combine_scales) {
    const std::string row = "{argument: x, scale: {by: max}}";
    EXPECT_EQ(
        body(assigned("(x: f32[2]) -> (y: f32[2]) {\n y = neg(x)\n}", policy_of(row, "scales: propagated, "))),
        "x.dynamic_rescale = dynamic_rescale(x) {groups: [], norm: max, to: 1} : f32[2] form of x\ny = neg(x.dynamic_rescale) : f32[2]\n");
    EXPECT_EQ(
        error_of([&] { assigned(product, policy_of(row)); }),
        "p.yaml:2: 'scale' cannot be used with 'argument'. The policy has stored scales (argument 'x'): use 'scale' with 'operand' or "
        "'result', or set 'scales: propagated'");
}

TEST(given_scales, of_what_an_argument_holds_are_the_arguments) {
    const std::string state = "(x: f32[2], w: f32[2] inout) -> (w = v) {\n v = add(w, x)\n}";
    EXPECT_EQ(error_of([&] { assigned(state, policy_of("{result: w, scale: {by: max}}")); }),
              "p.yaml:2: 'scaled' of result 'w': must be false as for its inout argument, got true. Give the argument a rule with the same "
              "'scaled'");
}

} // namespace scalide

#include "ir/text.h"
#include "judge.h"
#include "transforms/analysis/passes.h"
#include <cmath>
#include <gtest/gtest.h>
#include <iostream>

// The power-of-two helpers of Scalify and what means them here: operators, an intrinsic of the rule language, the split of scalars, and
// the table of formats. Values must be equal; where the index says that upstream is wrong, its correct values are asserted.

namespace scalide::test {
namespace {

using Json = nlohmann::json;

/// The rules of the tree, and the intrinsic `ratio` as an operator.
const Rulebook &rules_with_ratio() {
    static const Rulebook rulebook = [] {
        Rulebook made = rules();
        made.add("op: safe_div\nfamily: elementwise\ndoc: x / y, 0 where y is 0.\noperands: {x: T float, y: T float}\nvalue: ratio(x, y)\n"
                 "grad: none\ncheck: {gradient: none, cases: [{x: [m], y: [m]}]}\n",
                 "pow2_test.yaml");
        return made;
    }();
    return rulebook;
}

/// What a helper is here, in f32: f16 and bf16 are exact in it.
const std::map<std::string, std::string> programs{
    {"pow2_round.NONE", "(x: f32[n]) -> (z: f32[n] = x) {\n}"},
    {"pow2_round.DOWN", "(x: f32[n]) -> (z: f32[n]) {\n m = abs(x)\n z = pow2_down(m)\n}"},
    {"pow2_round.UP", "(x: f32[n]) -> (z: f32[n]) {\n m = abs(x)\n z = pow2_up(m)\n}"},
    {"pow2_decompose", "(x: f32[n]) -> (s: f32[n], m: f32[n]) {\n s, m = pow2_decompose(x)\n}"},
    {"get_mantissa", "(x: f32[n]) -> (m: f32[n]) {\n m = get_mantissa(x)\n}"},
    {"safe_div", "(x: f32[n], y: f32[n]) -> (z: f32[n]) {\n z = safe_div(x, y)\n}"},
    {"safe_reciprocal", "(x: f32[n]) -> (z: f32[n]) {\n z = safe_div(1, x)\n}"},
    {"pow2_truncate", "(x: f32[n]) -> (z: f32[n]) {\n z = pow2_truncate(x)\n}"},
    {"as_e8m0", "(x: f32[n]) -> (z: u8[n]) {\n z = as_e8m0(x)\n}"},
    {"from_e8m0", "(x: u8[n]) -> (z: f32[n]) {\n z = from_e8m0(x)\n}"},
};

std::string program_name(const Json &entry) {
    const std::string op = entry["op"];
    return op == "pow2_round" ? op + "." + entry["attrs"]["mode"].get<std::string>() : op;
}

std::vector<Tensor> run_program(const GoldenSuite &suite, const Json &entry) {
    const Program program = infer_types(parse_program("program p" + programs.at(program_name(entry)), "pow2"), rules_with_ratio());
    std::vector<Array> inputs;
    for (const Tensor &tensor : read_tensors(suite, entry["inputs"])) {
        const Dtype dtype = program.type(program.arguments[inputs.size()].value).dtype;
        inputs.push_back({dtype, tensor.data.shape, tensor.data.data});
    }
    std::vector<Tensor> results;
    for (Array &array : interpret(program, inputs, rules_with_ratio(), Mode::stored)) results.push_back({std::move(array), std::nullopt});
    return results;
}

/// Each value as a scalar argument that becomes a scaled result.
std::vector<Tensor> split_scalars(const GoldenSuite &suite, const Json &entry) {
    const Json input = {{{"scaled", false}}}, output = {{{"scaled", true}}};
    const Program source = parse_program("program p(x: " + entry["inputs"][0]["dtype"].get<std::string>() +
                                             "[]) -> (z: " + entry["inputs"][0]["dtype"].get<std::string>() + "[] = x) {\n}\n",
                                         "pow2");
    const ScaledProgram program(source, input, output, policy_of({{"rounding", "DOWN"}}));
    Tensor values = read_tensor(suite, entry["inputs"][0]), data = values, scales = values;
    for (size_t i = 0; i < values.data.data.size(); i++) {
        const Tensor made = program.run({{{values.data.dtype, {}, {values.data.data[i]}}, std::nullopt}})[0];
        data.data.data[i] = made.data.data[0];
        scales.data.data[i] = *made.scale;
    }
    return {data, scales};
}

using Run = std::vector<Tensor> (*)(const GoldenSuite &, const Json &);

const std::map<std::string, Run> runs{
    {"make_scaled_scalar", split_scalars},
};

/// Upstream loses f32 subnormals (scale 0, or flushed), and says so only in part; it truncates NaN to infinity. Our converts to f16
/// saturate, the infinity is in the scale.
bool may_deviate(const Json &entry, double input) {
    const std::string op = entry["op"];
    const bool splits = op == "pow2_decompose" || op == "get_mantissa" || op == "make_scaled_scalar";
    return (splits && input != 0 && std::fabs(input) < 0x1p-126) || (op == "pow2_truncate" && std::isnan(input)) ||
           (op == "make_scaled_scalar" && std::isinf(input));
}

/// The elements of `bug_mask`, whose right value the index does not have: of a split, whose parts must give the value.
std::vector<bool> bugs(const GoldenSuite &suite, const Json &entry, size_t count) {
    if (!entry.contains("bug_mask") || entry.contains("correct")) return std::vector<bool>(count);
    const std::vector<uint32_t> words = to_words(suite.arrays.read(entry["bug_mask"]));
    return {words.begin(), words.end()};
}

/// data * scale of the parts of a split; the scale of a mantissa alone is that of subnormals, 2^-126. NaN stays NaN.
bool is_right(const Json &entry, const std::vector<Tensor> &got, size_t i, double input) {
    const double first = got[0].data.data[i];
    if (std::isnan(input)) return std::isnan(first);
    return first * (got.size() == 2 ? got[1].data.data[i] : entry["op"] == "get_mantissa" ? 0x1p-126 : 1) == input;
}

/// The first element that is wrong.
std::string first_mistake(const GoldenSuite &suite, const Json &entry, const std::vector<Tensor> &got) {
    const std::vector<Tensor> expected = read_tensors(suite, entry[entry.contains("correct") ? "correct" : "outputs"]);
    const std::vector<double> inputs = read_tensor(suite, entry["inputs"][0]).data.data;
    const std::vector<bool> bug = bugs(suite, entry, inputs.size());
    if (got.size() != expected.size()) return "another number of results";
    for (size_t i = 0; i < inputs.size(); i++) {
        const bool deviates = bug[i] || may_deviate(entry, inputs[i]);
        if (deviates && !is_right(entry, got, i, inputs[i])) return "not the parts of " + std::to_string(inputs[i]);
        for (size_t r = 0; r < got.size() && !deviates; r++) {
            const Array &right = expected[r].data;
            const double a =
                is_float(right.dtype) ? round_to(right.dtype, got[r].data.data.at(i), Overflow::format) : got[r].data.data.at(i);
            const double b = right.data.at(i);
            if (a == b || (std::isnan(a) && std::isnan(b))) continue;
            std::ostringstream words;
            words.precision(9);
            words << "result " << r << " of " << inputs[i] << ": got " << a << ", expected " << b;
            return words.str();
        }
    }
    return "";
}

TEST(pow2, all_cases) {
    const auto suite = load_golden("pow2");
    int count = 0, refused = 0;
    for (const Json &entry : suite.index["cases"]) {
        if (entry["outputs"].empty()) {
            refused++; // the tests below
            continue;
        }
        count++;
        const auto run = runs.find(entry["op"]);
        const auto results = run == runs.end() ? run_program(suite, entry) : run->second(suite, entry);
        EXPECT_EQ(first_mistake(suite, entry, results), "") << entry["name"];
    }
    EXPECT_EQ(refused, 4);
    std::cout << "pow2: " << count + refused << " of " << suite.index["cases"].size() << " cases\n";
}

/// pow2_round.STOCHASTIC.error, pow2_decompose.STOCHASTIC.error: upstream names the mode and has none; here it is pow2_stochastic.
TEST(pow2, stochastic_rounding_needs_a_key) {
    const Program rounded =
        parse_program("program p(x: f32[n] scaled, y: f32[n] scaled) -> (z: f32[n] scaled) {\n z = add(x, y)\n}", "pow2");
    try {
        propagate_scales(infer_types(rounded, rules()), rules(), {"l2", Rounding::stochastic});
        FAIL();
    } catch (const UserError &error) {
        EXPECT_EQ(std::string(error.what()), "p: random rounding needs an argument 'key' of type u32[2]. Add it and pass other bits in "
                                             "each run, name another argument with 'key' in the policy, or give the "
                                             "operator a state of the policy as its second operand");
    }
}

/// pow2_decompose.int.error
TEST(pow2, integers_are_not_split) {
    try {
        infer_types(parse_program("program p(x: i32[n]) -> (m: i32[n]) {\n s, m = pow2_decompose(x)\n}", "pow2"), rules());
        FAIL();
    } catch (const UserError &error) {
        EXPECT_STREQ(error.what(),
                     "pow2:2:2: pow2_decompose.operands.x: must be a float, got x: i32[n]. convert_element_type converts an array");
    }
}

/// pow2_decompose.bf16.error: upstream does not take bf16, here it is split as any float.
TEST(pow2, bf16_is_split) {
    const Program program =
        infer_types(parse_program("program p(x: bf16[n]) -> (s: f32[n], m: bf16[n]) {\n s, m = pow2_decompose(x)\n}", "pow2"), rules());
    const auto parts = interpret(program, {{Dtype::bf16, {3}, {-5, 0, 0.375}}}, rules(), Mode::stored);
    EXPECT_EQ(parts[0].data, (std::vector<double>{4, 0, 0.25}));
    EXPECT_EQ(parts[1].data, (std::vector<double>{-1.25, 0, 1.5}));
}

} // namespace
} // namespace scalide::test

#include "frontend/generator.h"
#include "frontend/tracer.h"
#include "ir/text.h"
#include "support/programs/rules.h"
#include "words_of.h"
#include <gtest/gtest.h>
#include <stdexcept>

using namespace scalide;

namespace {

std::string error_of(const std::string &generator, const Parameters &parameters = {}) {
    return words_of_error([&] { run_generator(generator, parameters, rules()); });
}

/// The text of one program.
std::string text_of(const std::string &generator, const Parameters &parameters = {}) {
    return to_string(run_generator(generator, parameters, rules()));
}

class Affine : public Generator<Affine> {
public:
    GeneratorParam<int> size{"size", 3};
    GeneratorParam<double> factor{"factor", 0.5};
    Input<Tensor> x{"x", f32, {"n", size}};
    State<Tensor> w{"w", f32, {size}};
    Output<Tensor> y{"y", f32, {"n", size}};
    void generate() override {
        y = x * w * factor;
        w = w + 1;
    }
};
SCALIDE_REGISTER_GENERATOR(Affine, affine)

class Shapes : public Generator<Shapes> {
public:
    Input<Tensor> x{"x", f32, {"n", 3}}, z{"z", f32, {"n", 4}};
    Output<Tensor> y{"y", f32, {"n", 3}};
    void generate() override { y = x + z; }
};
SCALIDE_REGISTER_GENERATOR(Shapes, shapes)

class Coins : public Generator<Coins> {
public:
    Input<Tensor> key{"key", u32, {2}};
    Output<Tensor> heads{"heads", Dtype::boolean, {3}};
    void generate() override { heads = apply("bernoulli", {key, 0.25}, {{"shape", to_attribute(Extents{3})}}); }
};
SCALIDE_REGISTER_GENERATOR(Coins, coins)

class OtherType : public Generator<OtherType> {
public:
    Input<Tensor> x{"x", f32, {"n", 3}};
    Output<Tensor> y{"y", f16, {"n", 3}};
    void generate() override { y = -x; }
};
SCALIDE_REGISTER_GENERATOR(OtherType, other_type)

class OtherState : public Generator<OtherState> {
public:
    State<Tensor> w{"w", f32, {3}};
    Input<Tensor> x{"x", f32, {2, 3}};
    void generate() override { w = w + x; }
};
SCALIDE_REGISTER_GENERATOR(OtherState, other_state)

class Unassigned : public Generator<Unassigned> {
public:
    Input<Tensor> x{"x", f32, {"n"}};
    Output<Tensor> y{"y", f32, {"n"}};
    void generate() override {}
};
SCALIDE_REGISTER_GENERATOR(Unassigned, unassigned)

class Empty : public Generator<Empty> {
public:
    Input<Tensor> x{"x", f32, {"n"}};
    Output<Tensor> y{"y", f32, {"n"}};
    void generate() override { y = x + Tensor(); }
};
SCALIDE_REGISTER_GENERATOR(Empty, empty)

class SameName : public Generator<SameName> {
public:
    Input<Tensor> x{"x", f32, {"n"}}, z{"x", f32, {"n"}};
    void generate() override {}
};
SCALIDE_REGISTER_GENERATOR(SameName, same_name)

class UnknownOperator : public Generator<UnknownOperator> {
public:
    Input<Tensor> x{"x", f32, {"n"}};
    Output<Tensor> y{"y", f32, {"n"}};
    void generate() override { y = apply("qwertz", {x}); }
};
SCALIDE_REGISTER_GENERATOR(UnknownOperator, unknown_operator)

class OddNames : public Generator<OddNames> {
public:
    Input<Tensor> x{"layer 0/kernel\"x", f32, {"n"}};
    State<Tensor> w{"*/", f32, {"n"}};
    Output<Tensor> y{"out 1", f32, {"n"}};
    void generate() override {
        y = x + w;
        w = x;
    }
};
SCALIDE_REGISTER_GENERATOR(OddNames, odd_names)

class Throws : public Generator<Throws> {
public:
    GeneratorParam<int> size{"size", 3};
    Input<Tensor> x{"x", f32, {size}};
    Throws() { throw std::runtime_error("no such file"); }
    void generate() override {}
};
SCALIDE_REGISTER_GENERATOR(Throws, throws)

class ThrowsLater : public Generator<ThrowsLater> {
public:
    void generate() override { throw std::out_of_range("layer 7"); }
};
SCALIDE_REGISTER_GENERATOR(ThrowsLater, throws_later)

enum class Mode { fast, exact };

class Parameters_ : public Generator<Parameters_> {
public:
    GeneratorParam<float> eps{"eps", 1e-8f};
    GeneratorParam<bool> bias{"bias", true};
    GeneratorParam<Mode> mode{"mode", Mode::fast, {{"fast", Mode::fast}, {"exact", Mode::exact}}};
    GeneratorParam<std::string> activation{"activation", "tanh"};
    GeneratorParam<Dtype> dtype{"dtype", bf16};
    GeneratorParam<uint8_t> layers{"layers", 1};
    Input<Tensor> x{"x", dtype, {"n"}};
    Output<Tensor> y{"y", dtype, {"n"}};
    void generate() override {
        Tensor h = x;
        for (int i = 0; i < layers; i++) h = apply(activation, {h});
        if (bias) h = h + 1;
        if (mode == Mode::exact) h = h * 3;
        y = h + eps;
    }
};
SCALIDE_REGISTER_GENERATOR(Parameters_, parameters)

class Axes : public Generator<Axes> {
public:
    Input<Tensor> x{"x", f32, {2, "n", 4}};
    Output<Tensor> all{"all", f32, {}}, last{"last", f32, {2, "n"}};
    void generate() override {
        all = apply("mean", {x});
        last = apply("mean", {x}, {{"axes", to_attribute(std::vector<int64_t>{2})}});
    }
};
SCALIDE_REGISTER_GENERATOR(Axes, axes)

/// As the generated functions of operators take axes and their pairs.
Tensor product(const Operand &lhs, const Operand &rhs, const AxisPairs &contract, const AxisPairs &batch = no_axis_pairs) {
    return apply("dot_general", {lhs, rhs}, {{"contract", to_attribute(contract)}, {"batch", to_attribute(batch)}});
}

class Pairs : public Generator<Pairs> {
public:
    Input<Tensor> h{"h", f32, {2, 3, 4}}, u{"u", f32, {4, 5}}, k{"k", f32, {2, 6, 4}};
    Output<Tensor> plain{"plain", f32, {2, 3, 5}}, batched{"batched", f32, {2, 3, 6}};
    void generate() override {
        plain = product(h, u, {{2}, {0}});
        batched = product(h, k, {{2}, {2}}, {{0}, {0}});
    }
};
SCALIDE_REGISTER_GENERATOR(Pairs, pairs)

/// Indices of 64 bits, as applications have them.
class Rows : public Generator<Rows> {
public:
    Input<Tensor> ids{"ids", i64, {"b"}};
    Input<Tensor> x{"x", f32, {"b", 10}};
    State<Tensor> table{"table", f32, {10, 4}};
    Output<Tensor> known{"known", boolean, {"b"}}, place{"place", i64, {"b"}};
    void generate() override {
        const Tensor loss = mean(apply("embedding", {table, ids}));
        known = ids < 10;
        place = apply("convert_element_type", {apply("argmax", {x}, {{"axis", 1}})}, {{"dtype", "i64"}});
        table = table - 0.5 * grad(loss, table);
    }
    static Tensor mean(const Tensor &x) { return apply("mean", {x}); }
};
SCALIDE_REGISTER_GENERATOR(Rows, rows)

/// Padding as the generated functions of window operators take it.
Tensor pooled(const Tensor &x, const std::vector<int64_t> &window, const WindowPadding &padding = default_padding) {
    Attributes attributes{{"window", to_attribute(window)}};
    if (padding != default_padding) attributes["padding"] = padding.attribute;
    return apply("max_pool", {x}, attributes);
}

class Paddings : public Generator<Paddings> {
public:
    Input<Tensor> x{"x", f32, {"b", 8}};
    Output<Tensor> valid{"valid", f32, {"b", 6}}, same{"same", f32, {"b", 8}}, pairs{"pairs", f32, {"b", 9}};
    void generate() override {
        valid = pooled(x, {1, 3});
        same = pooled(x, {1, 3}, "same");
        pairs = pooled(x, {1, 3}, {{0, 0}, {1, 2}});
    }
};
SCALIDE_REGISTER_GENERATOR(Paddings, paddings)

class Numbers : public Generator<Numbers> {
public:
    Input<Tensor> x{"x", f32, {"n"}};
    Output<Tensor> y{"y", f32, {"n"}};
    void generate() override {
        Tensor h = x * 2;
        h.numerics().rescale("max", 224).store(f8_e4m3fn);
        y = h;
    }
};
SCALIDE_REGISTER_GENERATOR(Numbers, numbers)

class Scopes : public Generator<Scopes> {
public:
    Input<Tensor> x{"x", f32, {"n"}};
    Output<Tensor> y{"y", f32, {"n"}};
    void generate() override {
        Tensor h;
        {
            Scope mlp("mlp");
            Scope first("0");
            h = -x;
        }
        y = -h;
    }
};
SCALIDE_REGISTER_GENERATOR(Scopes, scopes)

class Square : public Generator<Square> {
public:
    State<Tensor> w{"w", f32, {4}};
    Output<Tensor> loss{"loss", f32, {}};
    void generate() override {
        loss = apply("reduce_sum", {w * w}, {{"axes", to_attribute(std::vector<int64_t>{0})}});
        w = grad(loss, w);
    }
};
SCALIDE_REGISTER_GENERATOR(Square, square)

} // namespace

TEST(frontend, arguments_may_have_any_name) {
    EXPECT_EQ(text_of("odd_names"), "program odd_names(\"layer 0/kernel\\\"x\": f32[n], \"*/\": f32[n] inout)"
                                    " -> (\"out 1\": f32[n] = add, \"*/\" = \"layer 0/kernel\\\"x\") {\n"
                                    "  add = add(\"layer 0/kernel\\\"x\", \"*/\") : f32[n]\n}\n");
}

TEST(frontend, writes_a_program) {
    EXPECT_EQ(text_of("affine"), "program affine(x: f32[n, 3], w: f32[3] inout) -> (y: f32[n, 3] = mul1, w = add) {\n"
                                 "  broadcast_in_dim = broadcast_in_dim(w) {dims: [1], shape: [n, 3]} : f32[n, 3]\n"
                                 "  mul = mul(x, broadcast_in_dim) : f32[n, 3]\n"
                                 "  constant = constant() {dtype: f32, value: 0.5} : f32[]\n"
                                 "  broadcast_in_dim1 = broadcast_in_dim(constant) {dims: [], shape: [n, 3]} : f32[n, 3]\n"
                                 "  mul1 = mul(mul, broadcast_in_dim1) : f32[n, 3]\n"
                                 "  constant1 = constant() {dtype: f32, value: 1.0} : f32[]\n"
                                 "  broadcast_in_dim2 = broadcast_in_dim(constant1) {dims: [], shape: [3]} : f32[3]\n"
                                 "  add = add(w, broadcast_in_dim2) : f32[3]\n"
                                 "}\n");
}

TEST(frontend, parameters_come_from_outside) {
    const std::string text = text_of("affine", {{"size", "7"}, {"factor", "0.25"}});
    EXPECT_TRUE(text.starts_with("program affine(x: f32[n, 7], w: f32[7] inout) -> (y: f32[n, 7]")) << text;
    EXPECT_NE(text.find("{dtype: f32, value: 0.25}"), std::string::npos) << text;
    EXPECT_EQ(error_of("affine", {{"size", "7x"}}), "parameter.size: must be an integer in [-2147483648, 2147483647], got '7x'");
    EXPECT_EQ(error_of("affine", {{"size", "4294967299"}}),
              "parameter.size: must be an integer in [-2147483648, 2147483647], got '4294967299'");
    EXPECT_EQ(error_of("affine", {{"factor", ""}}), "parameter.factor: must be a number, got ''");
    EXPECT_EQ(error_of("affine", {{"width", "7"}}), "generator 'affine' has no parameter 'width'. Parameters: size, factor");
}

// The text of a float is that of its own bits, 1e-8 as f32; what is not given never is a text.
TEST(frontend, parameters_have_all_kinds_of_types) {
    const std::string text = text_of("parameters");
    EXPECT_TRUE(text.starts_with("program parameters(x: bf16[n]) -> (y: bf16[n]")) << text;
    EXPECT_NE(text.find("tanh(x)"), std::string::npos) << text;
    EXPECT_NE(text.find("value: 9.99999993922529e-09}"), std::string::npos) << text;
    EXPECT_NE(text.find("value: 1.0}"), std::string::npos) << text;
    EXPECT_EQ(text_of("parameters", {{"eps", "1e-8"}}), text);
    const std::string other = text_of(
        "parameters", {{"eps", "0.1"}, {"bias", "false"}, {"mode", "exact"}, {"activation", "sin"}, {"dtype", "f16"}, {"layers", "2"}});
    EXPECT_TRUE(other.starts_with("program parameters(x: f16[n]) -> (y: f16[n]")) << other;
    for (const char *part : {"sin1 = sin(sin)", "value: 3.0}", "value: 0.10000000149011612}"})
        EXPECT_NE(other.find(part), std::string::npos) << part << " in " << other;
    EXPECT_EQ(other.find("value: 1.0}"), std::string::npos) << other;
    EXPECT_EQ(error_of("parameters", {{"bias", "yes"}}), "parameter.bias: must be one of false, true, got 'yes'");
    EXPECT_EQ(error_of("parameters", {{"mode", "slow"}}), "parameter.mode: must be one of exact, fast, got 'slow'");
    EXPECT_EQ(error_of("parameters", {{"dtype", "f17"}}), "parameter.dtype: must be a dtype such as f32, bf16, f8_e4m3fn, got 'f17'");
    EXPECT_EQ(error_of("parameters", {{"layers", "256"}}), "parameter.layers: must be an integer in [0, 255], got '256'");
}

TEST(frontend, parameters_are_listed) {
    std::string list;
    for (const auto &[name, type, default_value] : generator_parameters("parameters", rules()))
        list += name + " = " + default_value + ": " + type + "\n";
    EXPECT_EQ(list, "eps = 1e-08: a number\nbias = true: one of false, true\nmode = fast: one of exact, fast\n"
                    "activation = tanh: a text\ndtype = bf16: a dtype such as f32, bf16, f8_e4m3fn\nlayers = 1: an integer in [0, 255]\n");
}

TEST(frontend, axes_that_are_left_out_are_all) {
    const std::string text = text_of("axes");
    EXPECT_NE(text.find("mean = mean(x) {axes: [0, 1, 2]} : f32[]"), std::string::npos) << text;
    EXPECT_NE(text.find("mean1 = mean(x) {axes: [2]} : f32[2, n]"), std::string::npos) << text;
}

TEST(frontend, axis_pairs_take_two_pairs_of_braces) {
    const std::string text = text_of("pairs");
    EXPECT_NE(text.find("dot_general(h, u) {batch: [[], []], contract: [[2], [0]], preferred: f32}"), std::string::npos) << text;
    EXPECT_NE(text.find("dot_general(h, k) {batch: [[0], [0]], contract: [[2], [2]], preferred: f32}"), std::string::npos) << text;
}

TEST(frontend, indices_have_64_bits) {
    const std::string text = text_of("rows");
    EXPECT_NE(text.find("(ids: i64[b], x: f32[b, 10], table: f32[10, 4] inout)"), std::string::npos) << text;
    EXPECT_NE(text.find("= narrow_index(ids) : i32[b]"), std::string::npos) << text;
    EXPECT_NE(text.find("{dtype: i64, value: 10}"), std::string::npos) << text;
}

/// A number that f64 does not represent would become another number. Next to a float it is rounded, as in C++.
class Large : public Generator<Large> {
public:
    GeneratorParam<bool> wide{"wide", false};
    Input<Tensor> ids{"ids", i64, {"b"}}, x{"x", f32, {"b"}};
    Output<Tensor> less{"less", boolean, {"b"}};
    void generate() override { less = wide ? ids < (int64_t{1} << 53) + 1 : x < (int64_t{1} << 53) + 1; }
};
SCALIDE_REGISTER_GENERATOR(Large, large)

TEST(frontend, integers_next_to_64_bits_are_exact) {
    EXPECT_NE(text_of("large").find("value: 9007199254740992.0"), std::string::npos) << text_of("large");
    try {
        text_of("large", {{"wide", "true"}});
        FAIL();
    } catch (const UserError &error) {
        EXPECT_NE(std::string(error.what()).find("lt: an integer next to i64 must be a number that f64 represents exactly"),
                  std::string::npos)
            << error.what();
    }
}

TEST(frontend, padding_is_a_word_or_pairs) {
    const std::string text = text_of("paddings");
    EXPECT_NE(text.find("{padding: valid, "), std::string::npos) << text;
    EXPECT_NE(text.find("{padding: same, "), std::string::npos) << text;
    EXPECT_NE(text.find("{padding: [[0, 0], [1, 2]], "), std::string::npos) << text;
}

TEST(frontend, numbers_beside_a_key_are_floats) {
    EXPECT_EQ(text_of("coins"), "program coins(key: u32[2]) -> (heads: bool[3] = bernoulli) {\n"
                                "  constant = constant() {dtype: f32, value: 0.25} : f32[]\n"
                                "  bernoulli = bernoulli(key, constant) {shape: [3], stream: 0} : bool[3]\n"
                                "}\n");
}

TEST(frontend, numerics_are_operators) {
    EXPECT_EQ(text_of("numbers"), "program numbers(x: f32[n]) -> (y: f32[n] = cast_on_forward) {\n"
                                  "  constant = constant() {dtype: f32, value: 2.0} : f32[]\n"
                                  "  broadcast_in_dim = broadcast_in_dim(constant) {dims: [], shape: [n]} : f32[n]\n"
                                  "  mul = mul(x, broadcast_in_dim) : f32[n]\n"
                                  "  dynamic_rescale = dynamic_rescale(mul) {groups: [], norm: max, to: 224.0} : f32[n]\n"
                                  "  cast_on_forward = cast_on_forward(dynamic_rescale) {dtype: f8_e4m3fn, overflow: format} : f32[n]\n"
                                  "}\n");
}

TEST(frontend, scopes_nest_and_end) {
    EXPECT_EQ(text_of("scopes"), "program scopes(x: f32[n]) -> (y: f32[n] = neg1) {\n"
                                 "  scope \"mlp/0\" {\n"
                                 "    neg = neg(x) : f32[n]\n"
                                 "  }\n"
                                 "  neg1 = neg(neg) : f32[n]\n"
                                 "}\n");
}

TEST(frontend, gradient_of_a_state) {
    EXPECT_EQ(text_of("square"), "program square(w: f32[4] inout) -> (loss: f32[] = reduce_sum, w = add) {\n"
                                 "  mul = mul(w, w) : f32[4]\n"
                                 "  reduce_sum = reduce_sum(mul) {axes: [0]} : f32[]\n"
                                 "  constant = constant() {dtype: f32, value: 1.0} : f32[] cotangent\n"
                                 "  broadcast_in_dim = broadcast_in_dim(constant) {dims: [], shape: [4]} : f32[4] cotangent\n"
                                 "  mul1 = mul(broadcast_in_dim, w) : f32[4] cotangent\n"
                                 "  mul2 = mul(broadcast_in_dim, w) : f32[4] cotangent\n"
                                 "  add = add(mul1, mul2) : f32[4] cotangent\n"
                                 "}\n");
}

TEST(frontend, mistakes_in_words) {
    const std::pair<const char *, const char *> cases[] = {
        {"shapes",
         "add: the shapes of the operands must broadcast, got [n, 3] and [n, 4]. Extents must be equal or 1, counted from the last axis"},
        {"other_type", "other_type.y: must have the declared type f16[n, 3], got f32[n, 3]"},
        {"other_state", "other_state.w: must have the declared type f32[3], got f32[2, 3]"},
        {"unassigned", "unassigned.y: must be assigned in generate(), got no assignment"},
        {"empty", "this tensor is used before it is assigned. Assign it, or pass an Input"},
        {"same_name", "two arguments have the name same_name.x. Rename one of them"},
        {"throws_later", "generator 'throws_later' failed: generate() threw an exception: layer 7"},
        {"unknown_operator", "unknown operator 'qwertz'. Add a rule file, see docs/reference/rules.md"},
    };
    for (const auto &[generator, words] : cases) EXPECT_EQ(error_of(generator), words);
    EXPECT_TRUE(error_of("nobody").starts_with("unknown generator 'nobody'. One of: affine, axes, by_hand, calls_observer, "));
    EXPECT_EQ(error_of("shape"), "unknown generator 'shape'. Did you mean 'shapes'?");
}

TEST(frontend, tensors_live_inside_a_generator) {
    try {
        Tracer::current();
        FAIL() << "there is none";
    } catch (const UserError &error) {
        EXPECT_STREQ(error.what(),
                     "tensors can be used only inside a generator. Derive from scalide::Generator and write the program in generate()");
    }
}

TEST(frontend, a_throwing_constructor_leaves_nothing_behind) {
    {
        const Parameters parameters{{"size", "5"}};
        EXPECT_EQ(error_of("throws", parameters), "generator 'throws' failed: generate() threw an exception: no such file");
    }
    EXPECT_EQ(take_parameter({"size", "", ""}), std::nullopt);
    EXPECT_THROW(Tracer::current(), UserError);
    EXPECT_EQ(text_of("affine"), text_of("affine", {{"size", "3"}}));
}

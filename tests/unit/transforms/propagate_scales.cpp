#include "ir/text.h"
#include "ir/verify.h"
#include "rulebook/instance.h"
#include "support.h"
#include "support/programs/random_program.h"
#include "support/rounding_errors/running_error.h"
#include "transforms/analysis/passes.h"
#include <cmath>
#include <gtest/gtest.h>
#include <limits>

namespace scalide {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

Array scalar(double value) { return {Dtype::f32, {}, {value}}; }
Array vector(std::vector<double> values) { return {Dtype::f32, {static_cast<int64_t>(values.size())}, std::move(values)}; }

Program propagated(const Program &program, const ScaleSettings &settings = {}) {
    const Program made = propagate_scales(program, rules(), settings);
    verify(made, "propagate_scales");
    return made;
}

std::vector<Array> run(const std::string &text, const std::vector<Array> &inputs) {
    return interpret(simplify(expand(propagated(typed(text)), rules()), rules()), inputs, rules(), Mode::stored);
}

/// Marks about half of the arguments and results as scaled.
void mark_scaled(Program &program, std::mt19937 &random) {
    for (Argument &argument : program.arguments) argument.scaled = random() % 2 == 0;
    for (Result &result : program.results) result.scaled = random() % 2 == 0;
}

/// Inputs of the propagated program: value / scale and scale where an argument is scaled, by random powers of two.
std::vector<Array> split_inputs(const Program &program, const std::vector<Array> &inputs, std::mt19937 &random) {
    std::vector<Array> split;
    for (size_t i = 0; i < inputs.size(); i++) {
        split.push_back(inputs[i]);
        if (!program.arguments[i].scaled) continue;
        const double scale = std::ldexp(1.0, static_cast<int>(random() % 13) - 6);
        for (double &element : split.back().data) element /= scale;
        split.push_back(scalar(scale));
    }
    return split;
}

/// Outputs as full values.
std::vector<Array> joined(const Program &program, const std::vector<Array> &outputs) {
    std::vector<Array> full;
    for (size_t i = 0, at = 0; i < program.results.size(); i++) {
        full.push_back(outputs[at++]);
        if (!program.results[i].scaled) continue;
        for (double &element : full.back().data) element *= outputs[at].data[0];
        at++;
    }
    return full;
}

/// The scale of y when those of x and z are 1.
double unit_scale(const std::string &node, Rounding rounding) {
    const Program program = typed("(x: f32[16] scaled, z: f32[16] scaled) -> (y: f32[16] scaled) {\n  y = " + node + "\n}");
    const Array normal = vector(std::vector<double>(16, 0.5));
    return interpret(propagated(program, {"unit", rounding}), {normal, scalar(1), normal, scalar(1)}, rules(), Mode::real).at(1).data[0];
}

} // namespace

TEST(transforms, propagate_scales_agrees) {
    for (const char *strategy : {"l2", "max", "unit"}) {
        for (const Rounding rounding : {Rounding::down, Rounding::up, Rounding::nearest, Rounding::none}) {
            for (uint32_t seed = 1; seed <= 3; seed++) {
                std::mt19937 random(seed);
                Program program = random_program(random, 6);
                const std::vector<ValueId> wrt = {program.arguments[0].value, program.arguments[2].value, program.arguments[4].value};
                for (const ValueId gradient : append_gradient(program, rules(), program.results[0].value, wrt)) {
                    program.results.push_back({program.value_name(gradient), gradient});
                }
                mark_scaled(program, random);
                SCOPED_TRACE(strategy + std::string(" ") + std::string(to_string(rounding)) + " seed " + std::to_string(seed) + "\n" +
                             to_string(program));
                const std::vector<Array> inputs = random_inputs(program, random);
                const Program made = propagated(program, {strategy, rounding});
                const auto expected = interpret_with_errors(program, inputs, rules(), Mode::real);
                const auto split = split_inputs(program, inputs, random);
                ASSERT_EQ(difference(joined(program, interpret(made, split, rules(), Mode::real)), expected), "");
                const Program simple = simplify(expand(made, rules()), rules());
                ASSERT_EQ(difference(joined(program, interpret(simple, split, rules(), Mode::real)), expected), "");
            }
        }
    }
}

/// Functions close to linear near zero: data of a small scale stays near 1, as the argument's does, and so does that of a large one.
TEST(transforms, propagate_scales_keeps_small_scales_of_functions_that_are_linear_near_zero) {
    const Array data = vector({0.25, -0.5, 0.75, -0.25});
    for (const std::string op : {"tanh", "sin", "tan", "asin", "atan", "sinh", "asinh", "atanh", "erf", "erf_inv", "expm1", "log1p"})
        for (const double scale : {0x1p-40, 0x1p-20, 1.0}) {
            const Program program = typed("(x: f32[4] scaled) -> (y: f32[4] scaled) {\n  y = " + op + "(x)\n}");
            const std::vector<Array> results = interpret(propagated(program), {data, scalar(scale)}, rules(), Mode::real);
            for (const double element : results[0].data) {
                EXPECT_GT(std::abs(element), 0.1) << op << " at " << scale;
                EXPECT_LT(std::abs(element), 2) << op << " at " << scale;
            }
        }
}

TEST(transforms, propagate_scales_leaves_plain_programs_alone) {
    const Program program = typed("(x: f32[4], y: f32[4]) -> (z: f32[4]) {\n a = neg(x)\n z = add(a, y)\n}");
    EXPECT_EQ(to_string(propagated(program)), to_string(program));
}

TEST(transforms, propagate_scales_believes_every_rescale) {
    Rulebook rulebook = Rulebook::load({SCALIDE_RULES_DIR});
    rulebook.add(
        "{op: my_rescale, family: scaling, doc: own, operands: {x: float}, let: {n: norm_max(x.data), r: 'pow2_down(n)'}, value: x, "
        "scale: x.scale * r, data: 'x.data * ratio(x.scale, scale)', grad: {x: ct}, check: {cases: [{x: [m]}]}}",
        "my.yaml");
    const std::vector<Array> inputs = {vector({1e-7, 3e-8, -2e-8, 0})};
    for (const char *op : {"my_rescale(x)", "dynamic_rescale(x) {norm: max}", "dynamic_rescale_max(x)"}) {
        const Program program = infer_types(parse_program(std::string("program p(x: f32[4]) -> (y: f32[4] = s) {\n a = ") + op +
                                                              "\n b = convert_element_type(a) {dtype: f16}\n c = convert_element_type(b) "
                                                              "{dtype: f32}\n s = stop_scaling(c)\n}\n",
                                                          "p.scl"),
                                            rulebook);
        const Program made = expand(propagate_scales(program, rulebook, {}), rulebook);
        const std::vector<double> got = interpret(made, inputs, rulebook, Mode::stored).at(0).data;
        for (size_t i = 0; i < got.size(); i++) EXPECT_NEAR(got[i], inputs[0].data[i], 1e-10) << op << ": f16 alone keeps no bit of 3e-8";
    }
}

TEST(transforms, propagate_scales_multiplies_codes) {
    const Program made =
        propagated(typed("(x: f16[2, 3] scaled, y: f16[3, 2] scaled) -> (z: f32[2, 2] = z) {\n"
                         " a = convert_element_type(x) {dtype: f32}\n b = stop_scaling(a)\n"
                         " c = convert_element_type(y) {dtype: f32}\n d = stop_scaling(c)\n e = transpose(d) {permutation: [0, 1]}\n"
                         " z = dot_general(b, e) {contract: [[1], [0]]}\n}"));
    const std::string text = to_string(made);
    EXPECT_NE(text.find("mul(x.scale, y.scale)"), std::string::npos) << "the sums are multiplied, not the operands\n" << text;
}

TEST(transforms, propagate_scales_makes_pairs) {
    EXPECT_EQ(
        to_string(
            propagated(typed("(x: f32[4] scaled, w: f16[2] scaled inout, n: i32[4]) -> (y: f32[4] scaled, w = w) {\n y = neg(x)\n}"))),
        "program p\n"
        "    (x.data: f32[4] data of x, x.scale: f32[] scale of x, w.data: f16[2] data of w inout, w.scale: f32[] scale of w inout, n: "
        "i32[4])\n"
        "    -> (y.data: f32[4] data of y, y.scale: f32[] scale of y = x.scale, w.data = w.data, w.scale = w.scale) {\n"
        "  y.data = neg(x.data) : f32[4] data of y\n"
        "}\n");
}

TEST(transforms, propagate_scales_leaves_names_to_whole_arrays) {
    const Program made =
        propagated(typed("(w: f32[2] scaled inout, w.scale: f32[], w.data: f32[2]) -> (w = y, y.data: f32[2] = n, y: f32[2] "
                         "scaled) {\n y = neg(w)\n n = mul(w.data, w.scale)\n}"));
    EXPECT_EQ(to_string(made),
              "program p\n"
              "    (w.data1: f32[2] data of w inout, w.scale1: f32[] scale of w inout, w.scale: f32[], w.data: f32[2])\n"
              "    -> (w.data1 = y.data, w.scale1 = w.scale1, y.data: f32[2] = n, y.data1: f32[2] data of y = y.data, y.scale: "
              "f32[] scale of y = w.scale1) {\n"
              "  y.data = neg(w.data1) : f32[2] data of y\n"
              "  broadcast_in_dim = broadcast_in_dim(w.scale) {dims: [], shape: [2]} : f32[2]\n"
              "  n = mul(w.data, broadcast_in_dim) : f32[2]\n"
              "}\n");
    EXPECT_NO_THROW(verify(made, "propagate_scales"));
    EXPECT_EQ(to_string(parse_program(to_string(made), "t.scl")), to_string(made));
}

TEST(transforms, propagate_scales_converts_at_results) {
    EXPECT_EQ(run("(x: f32[2] scaled) -> (y: f32[2]) {\n y = neg(x)\n}", {vector({1, 3}), scalar(8)})[0].data,
              (std::vector<double>{-8, -24}));
    const auto made = run("(x: f32[2], s: f32[] scaled) -> (y: f32[2] scaled, z: f32[] scaled, t: f32[] scaled = s) {\n y = neg(x)\n"
                          " z = constant() {value: -12.0}\n}",
                          {vector({1, 3}), scalar(1), scalar(1)});
    EXPECT_EQ(made[0].data, (std::vector<double>{-1, -3}));
    EXPECT_EQ(made[1].data[0], 1);
    EXPECT_EQ(made[2].data[0], -1.5);
    EXPECT_EQ(made[3].data[0], 8);
}

/// What is not 0 in a result of zeros: a fill, the start of a window without elements.
TEST(transforms, zero_scales_hold_what_is_not_zero) {
    const Program program = typed("(x: f32[2] scaled, i: i32[2, 1]) -> (m: f32[3], n: f32[3], g: f32[2], h: f32[2]) {\n"
                                  "  m = reduce_window_max(x) {window: [2], low: [2]}\n"
                                  "  n = reduce_window_min(x) {window: [2], low: [2]}\n"
                                  "  g = gather(x, i) {offset_dims: [], collapsed_slice_dims: [0], start_index_map: [0], slice_sizes: [1], "
                                  "fill_value: 3}\n"
                                  "  h = gather(x, i) {offset_dims: [], collapsed_slice_dims: [0], start_index_map: [0], slice_sizes: [1], "
                                  "fill_value: inf}\n}");
    const std::vector<Array> got =
        interpret(propagate_scales(program, rules(), {}), {{Dtype::f32, {2}, {5, -7}}, {Dtype::f32, {}, {0}}, {Dtype::i32, {2, 1}, {1, 9}}},
                  rules(), Mode::stored);
    EXPECT_EQ(got[0].data, (std::vector<double>{-INFINITY, 0, 0}));
    EXPECT_EQ(got[1].data, (std::vector<double>{INFINITY, 0, 0}));
    EXPECT_EQ(got[2].data, (std::vector<double>{0, 3}));
    EXPECT_EQ(got[3].data, (std::vector<double>{0, INFINITY}));
}

TEST(transforms, set_scaling_makes_scaled_values) {
    const auto made = run("(x: f32[2], y: f32[2] scaled) -> (z: f32[2] scaled, y2: f32[2] scaled = y) {\n z = set_scaling(x, 4)\n}",
                          {vector({1, 3}), vector({1, 1}), scalar(1)});
    EXPECT_EQ(made[0].data, (std::vector<double>{0.25, 0.75}));
    EXPECT_EQ(made[1].data[0], 4);
}

TEST(transforms, dynamic_rescale_makes_scaled_values) {
    const auto made = run("(x: f32[2], y: f32[2] scaled) -> (z: f32[2] scaled) {\n z = dynamic_rescale(x) {norm: max}\n}",
                          {vector({1, 0x1p-20}), vector({1, 1}), scalar(1)});
    EXPECT_EQ(made[0].data, (std::vector<double>{1, 0x1p-20}));
    const auto small = run("(x: f32[2], y: f32[2] scaled) -> (z: f32[2] scaled) {\n z = dynamic_rescale(x) {norm: max}\n}",
                           {vector({0x1p-30, 0x1.8p-20}), vector({1, 1}), scalar(1)});
    EXPECT_EQ(small[0].data, (std::vector<double>{0x1p-10, 1.5}));
    EXPECT_EQ(small[1].data[0], 0x1p-20);
}

/// The scales of dequantized operands are factors of the sum.
TEST(transforms, matmuls_read_quantized_operands) {
    const Program source = typed("(a: f8_e4m3fn[2, 3], b: f8_e4m3fn[3, 2], s: f32[], t: f32[]) -> (z: f32[2, 2]) {\n"
                                 " x = dequantize(a, s)\n y = dequantize(b, t)\n z = dot_general(x, y) {contract: [[1], [0]]}\n}");
    const Program made = simplify(expand(propagated(assign_numerics(source, rules(), {})), rules()), rules());
    std::vector<std::string> ops;
    for (const Node &node : made.nodes) ops.push_back(node.op);
    EXPECT_EQ(ops,
              (std::vector<std::string>{"convert_element_type", "convert_element_type", "dot_general", "mul", "broadcast_in_dim", "mul"}));
    const Array a{Dtype::f8_e4m3fn, {2, 3}, {1, 2, 3, 4, 5, 6}}, b{Dtype::f8_e4m3fn, {3, 2}, {1, 0, 0, 1, 1, 1}};
    EXPECT_EQ(interpret(made, {a, b, scalar(0.1), scalar(2)}, rules(), Mode::stored)[0].data,
              interpret(source, {a, b, scalar(0.1), scalar(2)}, rules(), Mode::stored)[0].data);
}

/// A norm in f32 has its scale in f32: nothing is widened, clamped or narrowed. Beside another scale it is a product of f64 that is.
TEST(transforms, the_scale_of_a_norm_is_one_node) {
    const auto made = [](const std::string &x) {
        const Program program = propagated(typed("(x: f32[2]" + x + ") -> (z: f32[2] scaled) {\n z = dynamic_rescale(x) {norm: max}\n}"));
        std::vector<std::string> ops;
        for (const Node &node : program.nodes)
            if (program.type(node.results[0]).is_scalar()) ops.push_back(node.op);
        return ops;
    };
    EXPECT_EQ(made(""), (std::vector<std::string>{"norm_max", "norm_to_scale", "constant", "divide_no_nan"}));
    const std::vector<std::string> scaled = made(" scaled");
    EXPECT_EQ(std::ranges::count(scaled, "clamp_scale"), 1);
}

/// A floor of 1/256 of the scale of x, here 1; the power of two below the norm; without a norm x keeps its scale.
TEST(transforms, delayed_rescale_takes_the_scale_of_what_is_replaced) {
    const std::string text = "(x: f32[2], y: f32[2] scaled) -> (z: f32[2] scaled) {\n z = delayed_rescale(x, y) {norm: max}\n}";
    const auto made = run(text, {vector({0x1p-19, -0x1p-18}), vector({3, 1}), scalar(0x1p-20)});
    EXPECT_EQ(made[0].data, (std::vector<double>{0x1p-11, -0x1p-10}));
    EXPECT_EQ(made[1].data[0], 0x1p-8);
    const auto close = run(text, {vector({5, 0x1p-20}), vector({6, 1}), scalar(0.25)});
    EXPECT_EQ(close[0].data, (std::vector<double>{5, 0x1p-20}));
    EXPECT_EQ(close[1].data[0], 1);
    const auto nothing = run(text, {vector({5, 0x1p-20}), vector({0, 0}), scalar(0x1p-30)});
    EXPECT_EQ(nothing[0].data, (std::vector<double>{5, 0x1p-20}));
    EXPECT_EQ(nothing[1].data[0], 1);
}

TEST(transforms, stop_scaling_makes_plain_values) {
    EXPECT_EQ(
        body(propagated(typed("(x: f32[2] scaled) -> (z: f32[2]) {\n z = stop_scaling(x)\n}"))),
        "broadcast_in_dim = broadcast_in_dim(x.scale) {dims: [], shape: [2]} : f32[2]\nmul = mul(x.data, broadcast_in_dim) : f32[2]\n");
}

/// Scale and data of x * v, x = (1, 1) at scale 1: those of v.
TEST(transforms, scalars_split_into_powers_of_two) {
    const std::string product = " b = broadcast_in_dim(v) {shape: [2], dims: []}\n z = mul(x, b)\n}";
    const struct {
        double value, data, scale;
    } cases[] = {{5, 1.25, 4}, {-0.75, -1.5, 0.5}, {1, 1, 1}, {0, 0, 0}, {0x1p-140, 0x1p-14, 0x1p-126}, {0x1.8p64, 1.5, 0x1p64}};
    for (const auto &c : cases) {
        const std::string constant = "v = constant() {value: " + to_string(Attribute(c.value)) + "}\n";
        const auto computed =
            run("(x: f32[2] scaled, v: f32[]) -> (z: f32[2] scaled) {\n" + product, {vector({1, 1}), scalar(1), scalar(c.value)});
        const auto folded = run("(x: f32[2] scaled) -> (z: f32[2] scaled) {\n " + constant + product, {vector({1, 1}), scalar(1)});
        for (const auto &outputs : {computed, folded}) {
            EXPECT_EQ(outputs[0].data[0], c.data) << c.value;
            EXPECT_EQ(outputs[1].data[0], c.scale) << c.value;
        }
    }
    for (const double value : {infinity, -infinity, std::nan("")}) {
        const auto made =
            run("(x: f32[] scaled, v: f32[]) -> (z: f32[] scaled = v, y: f32[] scaled = x) {\n}", {scalar(1), scalar(1), scalar(value)});
        EXPECT_EQ(made[1].data[0], infinity);
        EXPECT_TRUE(made[0].data[0] == value || std::isnan(value));
    }
}

/// The lowest f32 as a mask, of choices and of sums: what it leaves keeps its bits, and data are normal numbers.
TEST(transforms, masks_cost_no_bits) {
    const double lowest = std::numeric_limits<float>::lowest(), third = static_cast<float>(1.0 / 3);
    const std::string arguments = "(which: bool[2], x: f32[2] scaled, keep: f32[2] scaled) -> (y: f32[2] scaled) {\n"
                                  " m = constant() {value: -3.4028234663852886e+38}\n b = broadcast_in_dim(m) {shape: [2], dims: []}\n";
    for (const double scale : {0x1p-40, 1.0, 0x1p40}) {
        for (const std::string &choice :
             {" y = select_n(which, b, x)", " c = max(x, b)\n y = select_n(which, b, c)",
              " one = constant() {value: 1.0}\n"
              " ones = broadcast_in_dim(one) {shape: [2], dims: []}\n d = sub(ones, keep)\n e = mul(d, b)\n y = add(x, e)"}) {
            SCOPED_TRACE(choice + " at " + std::to_string(std::log2(scale)));
            const auto made = run(arguments + choice + "\n}",
                                  {{Dtype::boolean, {2}, {0, 1}}, vector({0, third}), scalar(scale), vector({0, 1}), scalar(1)});
            const double data = made[0].data[1], made_scale = made[1].data[0];
            EXPECT_EQ(data * made_scale, third * scale);
            EXPECT_EQ(static_cast<float>(made[0].data[0] * made_scale), static_cast<float>(lowest));
            EXPECT_GT(data, 0x1p-126);
        }
    }
}

/// What is chosen among others has room in 8 bits too, and adds to no scale above 1.
TEST(transforms, constants_among_choices_lend_no_scale) {
    const auto scale_beside = [](const std::string &constant, double scale) {
        return run("(x: f32[] scaled) -> (y: f32[] scaled) {\n c = constant() {value: " + constant + "}\n y = max(x, c)\n}",
                   {scalar(1.5), scalar(scale)});
    };
    EXPECT_EQ(scale_beside("-6.0", 0x1p-3)[1].data[0], 0x1p-3);
    EXPECT_EQ(scale_beside("-6.0", 0x1p-20)[1].data[0], 0x1p-4);
    EXPECT_EQ(scale_beside("6.0", 0x1p-20)[0].data[0], 96);
    EXPECT_EQ(scale_beside("-65504.0", 0x1p-20)[1].data[0], 1);
    EXPECT_EQ(scale_beside("-65504.0", 16)[1].data[0], 16);
    EXPECT_EQ(scale_beside("0.0", 0x1p-20)[1].data[0], 0x1p-20);
}

TEST(transforms, beside_an_infinite_scale_others_keep_theirs) {
    const std::vector<Array> inputs = {vector({2, 3}), scalar(4), vector({-1, 1}), scalar(infinity)};
    for (const std::string &operands : {"x, y", "y, x"}) {
        const auto made =
            run("(x: f32[2] scaled, y: f32[2] scaled) -> (z: f32[2] scaled, g: bool[2]) {\n z = max(" + operands + ")\n g = gt(x, y)\n}",
                inputs);
        EXPECT_EQ(made[0].data, (std::vector<double>{2, infinity})) << operands;
        EXPECT_EQ(made[1].data[0], 4);
        EXPECT_EQ(made[2].data, (std::vector<double>{1, 0}));
    }
}

TEST(transforms, composites_without_a_scale_are_scaled_by_their_parts) {
    const auto made = run("(x: f32[3] scaled) -> (z: f32[3]) {\n z = softmax(x) {axes: [0]}\n}", {vector({1, 2, 3}), scalar(0.5)});
    const double sum = std::exp(0.5) + std::exp(1) + std::exp(1.5);
    EXPECT_NEAR(made[0].data[0], std::exp(0.5) / sum, 1e-6);
}

TEST(transforms, zero_scales_are_safe) {
    const std::vector<Array> inputs = {vector({-1, 2}), scalar(0), vector({-3, 2}), scalar(0)};
    const std::string arguments = "(x: f32[2] scaled, y: f32[2] scaled) -> ";
    EXPECT_EQ(run(arguments + "(z: f32[2]) {\n z = add(x, y)\n}", inputs)[0].data, (std::vector<double>{0, 0}));
    EXPECT_EQ(run(arguments + "(z: f32[2]) {\n z = max(x, y)\n}", inputs)[0].data, (std::vector<double>{0, 0}));
    EXPECT_EQ(run(arguments + "(z: i32[]) {\n z = argmax(x) {axis: 0}\n}", inputs)[0].data, (std::vector<double>{0}));
    EXPECT_EQ(run(arguments + "(z: f32[2]) {\n z = sign(x)\n}", inputs)[0].data, (std::vector<double>{0, 0}));
    EXPECT_EQ(run(arguments + "(z: f32[2]) {\n p = gt(y, x)\n z = select_n(p, x, y)\n}", inputs)[0].data, (std::vector<double>{0, 0}));
    EXPECT_EQ(run(arguments + "(z: f32[2]) {\n z = exp(x)\n}", inputs)[0].data, (std::vector<double>{1, 1}));
}

TEST(transforms, propagate_scales_checks) {
    Rulebook own;
    own.add("op: ceil\nfamily: elementwise\ndoc: No scale.\noperands: {x: float}\nvalue: base\ngrad: {x: 0}\ncheck: {cases: [{x: [m]}]}\n",
            "own.yaml");
    const Program program = parse_program("program p(x: f32[2] scaled) -> (z: f32[2]) {\n  z = ceil(x) : f32[2]\n}\n", "t.scl");
    EXPECT_EQ(error_of([&] { propagate_scales(program, own, {}); }),
              "t.scl:2:3: operator 'ceil' has a scaled operand, but its rule defines no 'scale' (own.yaml:1). Add 'scale' to the rule, or "
              "apply 'stop_scaling' to the operand");
}

/// The factors of unit scaling go out of the data into the scale; a composite without a scale for other strategies is scaled by its parts.
TEST(transforms, propagate_scales_by_unit_scaling) {
    EXPECT_NEAR(unit_scale("add(x, z)", Rounding::none), std::sqrt(2), 1e-7);
    EXPECT_NEAR(unit_scale("gelu(x)", Rounding::none), 1 / 1.7667, 1e-4);
    EXPECT_NEAR(unit_scale("silu(x)", Rounding::none), 1 / 1.7667, 1e-4);
    EXPECT_NEAR(unit_scale("swiglu(x, z)", Rounding::none), std::exp2(-0.75), 1e-7);
    EXPECT_NEAR(unit_scale("softmax(x) {axes: [0]}", Rounding::none), std::pow(16, -0.9), 1e-7);
    EXPECT_EQ(unit_scale("add(x, z)", Rounding::down), 1);
    EXPECT_EQ(unit_scale("add(x, z)", Rounding::up), 2);
    EXPECT_EQ(unit_scale("gelu(x)", Rounding::nearest), 0.5);
    EXPECT_EQ(unit_scale("softmax(x) {axes: [0]}", Rounding::down), 0.125);
}

/// Of nothing, at scale 0: an infinity has to have a scale.
TEST(transforms, propagate_scales_through_the_largest_of_nothing) {
    for (const auto &[op, expected] : std::map<std::string, double>{{"reduce_max", -infinity}, {"reduce_min", infinity}}) {
        const std::vector<Array> got =
            run("(x: f32[n] scaled) -> (y: f32[] scaled) {\n  y = " + op + "(x) {axes: [0]}\n}", {vector({}), scalar(0)});
        EXPECT_EQ(got.at(0).data[0] * got.at(1).data[0], expected);
    }
}

} // namespace scalide

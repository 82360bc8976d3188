#include "interpret/interpret.h"
#include "rulebook/builder.h"
#include "support.h"
#include "transforms/analysis/passes.h"
#include <gtest/gtest.h>

// Attention and rotary positions, composites with a convention. Expected values are those of JAX 0.10.2: jax.nn.dot_product_attention on
// query [1, 2, 4, 2] and key and value [1, 3, 2, 2], in f32 inside, and its gradient by the key of sum(i * out[i]), i counting from 0.

namespace scalide {

namespace {

using Numbers = std::vector<double>;

const Array query{
    Dtype::f32, {1, 2, 4, 2}, {-1, -0.375, 0.25, 0.875, -0.625, 0, 0.625, -0.875, -0.25, 0.375, 1, -0.5, 0.125, 0.75, -0.75, -0.125}};
const Array key{Dtype::f32, {1, 3, 2, 2}, {-1, -0.125, 0.75, -0.5, 0.375, -0.875, 0, 0.875, -0.375, 0.5, -0.75, 0.125}};
const Array value{Dtype::f32, {1, 3, 2, 2}, {-1, -0.625, -0.25, 0.125, 0.5, 0.875, -0.875, -0.5, -0.125, 0.25, 0.625, 1}};
const Array mask{Dtype::boolean, {1, 4, 2, 3}, {1, 1, 1, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 1, 1, 0, 1, 1, 0, 0, 1, 1, 1, 1}};

/// 0, 1, 2 ... times a / 8 in [-1, 1]
Array filled(std::vector<int64_t> shape, int count, int a) {
    Array array{Dtype::f32, std::move(shape), {}};
    for (int i = 0; i < count; i++) array.data.push_back((i * a) % 17 / 8.0 - 1);
    return array;
}

const std::string operands = "(q: f32[1, 2, 4, 2], k: f32[1, 3, 2, 2], v: f32[1, 3, 2, 2]";
const std::string result = ") -> (y: f32[1, 2, 4, 2]) {\n y = ";

/// The result, and the gradient of sum(i * result[i]) by the key.
std::vector<Array> run(const std::string &text, const std::vector<Array> &inputs) {
    Program program = typed(text);
    Builder builder(rules(), program);
    const ValueId y = program.results[0].value;
    const ValueId flat = builder.add_one("reshape", {y}, {{"shape", to_attribute(std::vector<int64_t>{16})}});
    const ValueId counted =
        builder.add_one("iota", {}, {{"dtype", "f32"}, {"shape", to_attribute(std::vector<int64_t>{16})}, {"dimension", 0}});
    const ValueId loss =
        builder.add_one("reduce_sum", {builder.add_one("mul", {flat, counted})}, {{"axes", to_attribute(std::vector<int64_t>{0})}});
    for (const ValueId gradient : append_gradient(program, rules(), loss, {program.arguments[1].value}))
        program.results.push_back({"gradient", gradient});
    return interpret(program, inputs, rules(), Mode::real);
}

void expect_near(const Numbers &got, const Numbers &expected) {
    ASSERT_EQ(got.size(), expected.size());
    for (size_t i = 0; i < got.size(); i++) EXPECT_NEAR(got[i], expected[i], 1e-5) << i;
}

Numbers rotated(const std::string &pairs, const Array &positions) {
    const std::string text = "(x: f32[2, 1, 4], p: i32[2]) -> (y: f32[2, 1, 4]) {\n y = rotary(x, p) {pairs: " + pairs + ", base: 100}\n}";
    return interpret(typed(text), {{Dtype::f32, {2, 1, 4}, {1, 2, 3, 4, 1, 2, 3, 4}}, positions}, rules(), Mode::real)[0].data;
}

} // namespace

TEST(transforms, attention_shares_heads_in_groups) {
    const std::vector<Array> got = run(operands + result + "attention(q, k, v)\n}", {query, key, value});
    expect_near(got[0].data, {-0.4174131, -0.0424131, -0.2335117, 0.1414883, -0.0590983, 0.3159017, -0.1807735, 0.1942266, -0.3003078,
                              0.0746922, 0.0996606, 0.4746606, -0.2849115, 0.0900885, -0.0210830, 0.3539170});
    expect_near(got[1].data, {-2.0801030, -0.3456116, 0.7511919, 0.5802721, 3.0274772, -0.4682434, 3.6181538, -1.9619210, -0.9473732,
                              0.8138545, -4.3693456, 1.3816494});
}

TEST(transforms, causal_attention_sees_places_up_to_its_own) {
    const std::vector<Array> got = run(operands + result + "attention(q, k, v) {causal: true}\n}", {query, key, value});
    expect_near(got[0].data, {-1, -0.625, -1, -0.625, -0.25, 0.125, -0.25, 0.125, -0.4130824, -0.0380824, 0.1626763, 0.5376763, -0.6624464,
                              -0.2874464, -0.6053861, -0.2303861});
    expect_near(got[1].data, {-2.8088969, 0.3307811, -2.0478506, 1.4667301, 2.8088969, -0.3307810, 2.0478511, -1.4667299, 0, 0, 0, 0});
}

TEST(transforms, attention_with_a_mask) {
    const std::vector<Array> got =
        run(operands + ", m: bool[1, 4, 2, 3]" + result + "attention_masked(q, k, v, m)\n}", {query, key, value, mask});
    expect_near(got[0].data, {-0.4174131, -0.0424131, -0.4559272, -0.0809272, -0.0590983, 0.3159017, 0.625, 1, -0.3003078, 0.0746922,
                              0.0996606, 0.4746606, -0.2959578, 0.0790422, -0.0210830, 0.3539170});
    expect_near(got[1].data, {-2.0653687, -0.2940417, 0.9727224, 0.1329169, 2.8766283, -0.9962148, 4.1788771, -4.0599698, -0.8112586,
                              1.2902558, -5.1515993, 3.9270533});
}

TEST(transforms, attention_with_a_bias) {
    const std::vector<Array> got = run(operands + ", b: f32[1, 4, 2, 3]" + result + "attention_biased(q, k, v, b) {logit_scale: 0.5}\n}",
                                       {query, key, value, filled({1, 4, 2, 3}, 24, 11)});
    expect_near(got[0].data, {-0.0016538, 0.3733462, -0.4866597, -0.1116597, -0.2813324, 0.0936676, 0.0605132, 0.4355132, -0.5427243,
                              -0.1677243, -0.1946663, 0.1803337, -0.3728120, 0.0021880, 0.2577081, 0.6327081});
    expect_near(got[1].data, {-2.9918012, 0.2312940, 0.6158320, 1.6103094, 2.9843496, -0.5392729, 1.3405942, -0.9969856, 0.0074516,
                              0.3079790, -1.9564260, -0.6133237});
}

TEST(transforms, attention_of_a_query_that_sees_no_place_is_zero_and_so_are_its_gradients) {
    const double infinity = std::numeric_limits<double>::infinity();
    const Array nothing{Dtype::boolean, {1, 1, 1, 1}, {0}}, nowhere{Dtype::f32, {1, 1, 1, 1}, {-infinity}};
    const std::vector<Array> masked =
        run(operands + ", m: bool[1, 1, 1, 1]" + result + "attention_masked(q, k, v, m)\n}", {query, key, value, nothing});
    const std::vector<Array> biased =
        run(operands + ", m: f32[1, 1, 1, 1]" + result + "attention_biased(q, k, v, m)\n}", {query, key, value, nowhere});
    for (const std::vector<Array> &got : {masked, biased}) {
        EXPECT_EQ(got[0].data, Numbers(16, 0));
        EXPECT_EQ(got[1].data, Numbers(12, 0));
    }
}

TEST(transforms, attention_errors) {
    const auto end_of_error = [](const std::string &text) {
        const std::string error = error_of([&] { typed(text); });
        return error.substr(error.find("attention"));
    };
    EXPECT_EQ(
        end_of_error("(q: f32[1, 2, 3, 2], k: f32[1, 3, 2, 2], v: f32[1, 3, 2, 2]) -> (y: f32[1, 2, 3, 2]) {\n y = attention(q, k, v)\n}"),
        "attention: heads of query must be a multiple of those of key, got q: f32[1, 2, 3, 2], k: f32[1, 3, 2, 2], v: f32[1, 3, 2, 2]");
    EXPECT_EQ(end_of_error(operands + ", m: bool[2, 1, 2, 3]" + result + "attention_masked(q, k, v, m)\n}"),
              "attention_masked: mask must have the extents [batch, heads of query, query length, key length], or 1, got "
              "q: f32[1, 2, 4, 2], k: f32[1, 3, 2, 2], v: f32[1, 3, 2, 2], m: bool[2, 1, 2, 3]");
}

TEST(transforms, rotary_turns_pairs) {
    const Array positions{Dtype::i32, {2}, {0, 3}}; // turns by 3 and by 3 / 10
    expect_near(rotated("half", positions), {1, 2, 3, 4, -1.4133525, 0.7285921, -2.8288574, 4.4123864});
    expect_near(rotated("interleaved", positions), {1, 2, 3, 4, -1.2722325, -1.8388650, 1.6839286, 4.7079065});
}

} // namespace scalide

#include "fixture.h"
#include <cmath>
#include <gtest/gtest.h>

// Values of JAX 0.10.2 (jax.random, jax_threefry_partitionable on, as is its default).

namespace scalide {

namespace {

using Numbers = std::vector<double>;

const Array key{Dtype::u32, {2}, {0x13198a2e, 0x03707344}}, key_of_42{Dtype::u32, {2}, {0, 42}};

const Rulebook &rulebook() {
    static const Rulebook rules = Rulebook::load({SCALIDE_RULES_DIR});
    return rules;
}

/// One operator on a key (or what `key` says) and further operands.
Numbers draw(const std::string &node, const std::string &type, const Array &first = key, const std::vector<Array> &further = {}) {
    const auto typed = [](const Array &array) {
        std::string extents;
        for (const int64_t extent : array.shape) extents += (extents.empty() ? "" : ", ") + std::to_string(extent);
        return std::string(to_string(array.dtype)) + "[" + extents + "]";
    };
    std::string arguments = "key: " + typed(first);
    std::vector<Array> inputs{first};
    for (const Array &array : further) {
        arguments += ", x: " + typed(array);
        inputs.push_back(array);
    }
    const std::string text = "program p(" + arguments + ") -> (out: " + type + ") {\n  out = " + node + " : " + type + "\n}\n";
    return run(text, inputs, Mode::stored, rulebook())[0].data;
}

/// Relative to the expected numbers, in units of the last place of f32.
void expect_near(const Numbers &got, const Numbers &expected, double ulps) {
    ASSERT_EQ(got.size(), expected.size());
    for (size_t i = 0; i < got.size(); i++)
        EXPECT_LE(std::abs(got[i] - expected[i]), ulps * std::exp2(std::ilogb(expected[i]) - 23)) << got[i] << ", " << expected[i];
}

} // namespace

TEST(interpret, random_bits_of_jax) {
    EXPECT_EQ(draw("random_bits(key) {shape: []}", "u32[]"), (Numbers{2416971891}));
    EXPECT_EQ(draw("random_bits(key) {shape: [3, 5]}", "u32[3, 5]"),
              (Numbers{2416971891, 3421809153, 1892174999, 2075171332, 299407124, 3106772290, 2350253679, 1552542775, 3444822274,
                       1848325125, 3743153899, 1036822733, 1382673514, 845248126, 2570536883}));
    EXPECT_EQ(draw("random_bits(key) {shape: [2, 1, 3], dtype: u16}", "u16[2, 1, 3]"), (Numbers{4211, 43521, 19607, 39428, 38676, 38210}));
    EXPECT_EQ(draw("random_bits(key) {shape: [7], dtype: u8}", "u8[7]"), (Numbers{115, 1, 151, 4, 20, 66, 111}));
    EXPECT_EQ(draw("random_bits(key) {shape: [0, 3]}", "u32[0, 3]"), Numbers{});
}

TEST(interpret, random_keys_of_jax) {
    EXPECT_EQ(draw("random_split(key)", "u32[2, 2]", key_of_42), (Numbers{1832780943, 270669613, 64467757, 2916123636}));
    EXPECT_EQ(draw("random_split(key) {shape: [3]}", "u32[3, 2]"),
              (Numbers{1095259177, 3512222810, 3520574224, 438507793, 4239014620, 2355263051}));
    EXPECT_EQ(draw("random_split(key) {shape: [2, 3]}", "u32[2, 3, 2]", key_of_42),
              (Numbers{1832780943, 270669613, 64467757, 2916123636, 2465931498, 255383827, 3134548294, 894150801, 2954079971, 3276725750,
                       2765691542, 824333390}));
    EXPECT_EQ(draw("random_fold_in(key, x)", "u32[2]", key, {{Dtype::u32, {}, {4000000000}}}), (Numbers{695965399, 2276120494}));
    EXPECT_EQ(draw("random_seed(key)", "u32[2]", {Dtype::i32, {}, {2026}}), (Numbers{0, 2026}));
}

TEST(interpret, random_streams_differ) {
    EXPECT_NE(draw("random_bits(key) {shape: [4], stream: 1}", "u32[4]"), draw("random_bits(key) {shape: [4], stream: 2}", "u32[4]"));
}

TEST(interpret, random_numbers_of_jax) {
    const Numbers uniform{0.5627450942993164, 0.7967020273208618, 0.44055628776550293, 0.4831634759902954, 0.06971108913421631};
    EXPECT_EQ(draw("uniform(key) {shape: [5]}", "f32[5]"), uniform);
    expect_near(draw("uniform(key) {shape: [5], minval: -3, maxval: 2}", "f32[5]"),
                {-0.18627452850341797, 0.9835101366043091, -0.7972185611724854, -0.584182620048523, -2.651444435119629}, 8);
    EXPECT_EQ(draw("randint(key) {shape: [6], minval: -3, maxval: 10}", "i32[6]"), (Numbers{3, 2, 0, 4, 6, 6}));
    EXPECT_EQ(draw("randint(key) {shape: [6], minval: 0, maxval: 1000000}", "i32[6]"),
              (Numbers{804527, 934361, 86949, 635591, 489452, 267165}));
    expect_near(draw("normal(key) {shape: [5]}", "f32[5]"),
                {0.15793278813362122, 0.8298988938331604, -0.1495589017868042, -0.042215365916490555, -1.4779459238052368}, 4);
    expect_near(draw("truncated_normal(key) {shape: [5]}", "f32[5]"),
                {0.15069076418876648, 0.7830528616905212, -0.142706498503685, -0.040293559432029724, -1.3451441526412964}, 16);
    expect_near(draw("exponential(key) {shape: [5]}", "f32[5]"),
                {0.827238917350769, 1.5930825471878052, 0.5808123350143433, 0.6600286364555359, 0.07226008176803589}, 4);
    expect_near(draw("gumbel(key) {shape: [5]}", "f32[5]"),
                {0.553509533405304, 1.48159658908844, 0.19879606366157532, 0.318278431892395, -0.9796019792556763}, 8);
}

TEST(interpret, random_choices_of_jax) {
    EXPECT_EQ(draw("bernoulli(key, x) {shape: [3, 5]}", "bool[3, 5]", key, {f32_array({}, {0.3})}),
              (Numbers{0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0}));
    const Array logits = f32_array({3, 4}, {0, 1, 2, 0.5, 3, 0, 0, 0, 1, 1, 1, 1});
    EXPECT_EQ(draw("categorical(key, x)", "i32[3]", key, {logits}), (Numbers{1, 0, 2}));
    EXPECT_EQ(draw("categorical(key, x) {axis: 0}", "i32[4]", key, {logits}), (Numbers{2, 0, 2, 0}));
    EXPECT_EQ(draw("dropout(x, key) {rate: 0.25}", "f32[2, 4]", key, {f32_array({2, 4}, Numbers(8, 3))}),
              (Numbers{4, 0, 4, 4, 4, 4, 4, 4}));
    EXPECT_EQ(draw("dropout(x, key) {rate: 1}", "f32[3]", key, {f32_array({3}, Numbers(3, 1))}), Numbers(3, 0));
    EXPECT_EQ(draw("dropout(x, key) {rate: 0}", "f32[3]", key, {f32_array({3}, Numbers(3, 1))}), Numbers(3, 1));
}

} // namespace scalide

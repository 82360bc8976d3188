#include "fixture.h"
#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <numeric>

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

double mean(const Numbers &numbers) { return std::accumulate(numbers.begin(), numbers.end(), 0.0) / static_cast<double>(numbers.size()); }

/// x, 4096 times, rounded at random by `op` with these attributes. Only the two neighbours of x occur, the mean is x within 5 standard
/// deviations, and the same key rounds in the same way.
void expect_stochastic(const std::string &op, const std::string &attributes, double below, double x, double above) {
    SCOPED_TRACE(op + " " + attributes + " of " + std::to_string(x));
    const auto rounded = [&](const Array &from) {
        return draw(op + "(x, key) {" + attributes + "}", "f32[4096]", from, {f32_array({4096}, Numbers(4096, x))});
    };
    const Numbers numbers = rounded(key);
    const bool only_neighbours = std::ranges::all_of(numbers, [&](double number) { return number == below || number == above; });
    EXPECT_TRUE(only_neighbours);
    const double deviation = std::sqrt((x - below) * (above - x) / 4096);
    EXPECT_NEAR(mean(numbers), x, 5 * deviation + 1e-9);
    EXPECT_EQ(rounded(key), numbers);
    EXPECT_NE(rounded(key_of_42), numbers);
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

TEST(interpret, stochastic_rounding_keeps_the_mean) {
    expect_stochastic("stochastic_round", "dtype: f8_e4m3fn", 1, 1.09375, 1.125);
    expect_stochastic("stochastic_round", "dtype: f8_e5m2", -0.3125, -0.28125, -0.25);
    expect_stochastic("stochastic_round", "dtype: f8_e5m2", 0, 0x1p-18, 0x1p-16); // below the subnormal numbers
    expect_stochastic("stochastic_round", "dtype: f16", 2048, 2049.5, 2050);
    expect_stochastic("stochastic_round", "dtype: bf16", 1, 1.00390625, 1.0078125);
    expect_stochastic("stochastic_reduce_precision", "exponent_bits: 4, mantissa_bits: 1", 2, 2.75, 3);
    expect_stochastic("stochastic_reduce_precision", "exponent_bits: 4, mantissa_bits: 1", 0, 0x1p-7, 0x1p-6);
    expect_stochastic("pow2_stochastic", "stream: 3", 4, 5, 8);
}

TEST(interpret, stochastic_rounding_leaves_what_fits) {
    const double infinity = std::numeric_limits<double>::infinity();
    const Numbers fitting{0, 1, -1.5, 448, -0x1p-9, 1e6};
    const Numbers saturated{0, 1, -1.5, 448, -0x1p-9, 448};
    EXPECT_EQ(draw("stochastic_round(x, key) {dtype: f8_e4m3fn}", "f32[6]", key, {f32_array({6}, fitting)}), saturated);
    EXPECT_EQ(draw("stochastic_round(x, key) {dtype: f16}", "f32[2]", key, {f32_array({2}, {-infinity, 1e6})}),
              (Numbers{-infinity, 65504}));
    EXPECT_TRUE(std::isnan(draw("stochastic_round(x, key) {dtype: f8_e4m3fn}", "f32[1]", key, {f32_array({1}, {infinity})})[0]))
        << "what is infinite stays no number where the format has no infinity";
    EXPECT_EQ(draw("stochastic_round(x, key) {dtype: bf16}", "f32[6]", key, {f32_array({6}, {0, 1, -1.5, 448, -0x1p-133, 0x1p127})}),
              (Numbers{0, 1, -1.5, 448, -0x1p-133, 0x1p127}));
    EXPECT_EQ(draw("pow2_stochastic(x, key)", "f32[4]", key, {f32_array({4}, {0, 1, -0x1p-140, 0x1p127})}),
              (Numbers{0, 1, -0x1p-140, 0x1p127}));
}

} // namespace scalide

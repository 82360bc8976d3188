#include "judge.h"
#include "primitive_case.h"
#include <cmath>
#include <gtest/gtest.h>
#include <iostream>

// One operator a case: Scalify's rules on scaled, plain and mixed operands with zero, large, small, odd and special scales; plain LAX.

namespace scalide::test {
namespace {

using Json = nlohmann::json;

/// Two roundings on each side, and two more where scales are not powers of two (rounding NONE).
constexpr double ulps_of_scaling = 4;

/// Where upstream rounds scales to f16 on the way (their logarithm, or rounding NONE), f32 results are as exact as an f16: 2^13 ulp.
bool rounds_scales(const Json &entry) {
    const bool computes = entry["op"] == "log" || entry["config"].value("rounding", "") == "NONE";
    return computes && entry["inputs"].dump().find("\"scale_dtype\":\"f16\"") != std::string::npos;
}

std::string differences(const std::vector<Tensor> &results, const std::vector<Tensor> &expected, const std::vector<Tensor> &meant,
                        double ulps = ulps_of_scaling) {
    if (results.size() != expected.size()) return "no outputs";
    for (size_t i = 0; i < results.size(); i++) {
        const std::string words = difference(results[i], expected[i], meant[i], ulps);
        if (!words.empty()) return "result " + std::to_string(i) + ", " + words;
    }
    return "";
}

/// A dtype that a case rounds through: its error is one of that dtype, at the scale of the result.
std::optional<Dtype> lossy_dtype(const Json &entry) {
    const Json &attributes = entry["attrs"];
    const bool has = attributes.contains("dtype") && attributes["dtype"].is_string();
    return has ? parse_dtype(attributes["dtype"].get<std::string>()) : std::nullopt;
}

std::vector<Tensor> right_values(const GoldenSuite &suite, const Json &entry, const std::vector<Tensor> &meant,
                                 const std::vector<Tensor> &results) {
    std::vector<Tensor> right = entry.contains("true") ? read_tensors(suite, entry["true"]) : meant;
    const auto dtype = lossy_dtype(entry);
    for (size_t i = 0; i < right.size() && i < results.size(); i++) {
        right[i] = as_held_by(results[i], right[i]);
        if (!dtype || *dtype == Dtype::i32) continue;
        for (double &value : right[i].data.data) value /= results[i].scale.value_or(1);
        right[i] = {{*dtype, right[i].data.shape, right[i].data.data}, results[i].scale};
    }
    return right;
}

/// Operators, or cases, whose scale is not Scalify's, and why. Elsewhere the scales are the same.
const std::map<std::string, std::string> own_scales{
    {"as_scaled_array", "a given scale is kept as it is, also 1 for a number, and not rounded to f16"},
    {"conv_general_dilated", "the root of the number of terms goes into the scale, as in dot_general"},
    {"convert_element_type.156.f32.int", "integers have no scale"},
    {"convert_element_type.157.f16.int", "integers have no scale"},
    {"dynamic_rescale_l1", "a norm of 0 leaves the scale alone, and no smallest factor of 2^-14"},
    {"dynamic_rescale_l2", "a norm of 0 leaves the scale alone, and no smallest factor of 2^-14"},
    {"dynamic_rescale_max", "a norm of 0 leaves the scale alone, and no smallest factor of 2^-14"},
    {"integer_pow", "a zero scale becomes 1, so that x^0 and x^-1 are right"},
    {"max", "the scale of a zero operand does not win, whatever is known of it"},
    {"min", "the scale of a zero operand does not win, whatever is known of it"},
    {"reduce_prod", "a zero scale becomes 1, so that the empty product is right"},
    {"set_scaling.077.static_one_scaled", "a scale of 1 is set as any other"},
    {"sin", "linear near zero: scales below 1 are kept"},
    {"sqrt", "a power of two"},
    {"sub.104.scaled_np_scalar_zero", "x - 0 is x"},
};

/// Rounding UP doubles powers of two in Scalify and is left out. Scales of rounding NONE, and those that upstream stores in f16, are
/// rounded; ours are not below 2^-126.
std::string scale_differences(const Json &entry, const std::vector<Tensor> &results, const std::vector<Tensor> &expected) {
    const bool own = own_scales.contains(entry["op"]) || own_scales.contains(entry["name"]);
    if (own || entry["config"].value("rounding", "UP") == "UP") return "";
    for (size_t i = 0; i < expected.size(); i++) {
        if (!expected[i].scale || !std::isfinite(*expected[i].scale)) continue;
        const double got = *results[i].scale, right = *expected[i].scale;
        const bool narrow = entry["outputs"][i]["scale_dtype"] == "f16", exact = entry["config"]["rounding"] == "DOWN" && !narrow;
        const double allowed = std::max(0x1p-126, exact ? 0 : std::fabs(right) * (narrow ? 0x1p-9 : 0x1p-21));
        if (std::fabs(got - right) > allowed) return "scale " + std::to_string(got) + ", expected " + std::to_string(right);
    }
    return "";
}

void run_case(const GoldenSuite &suite, const Deviations &deviations, const Json &entry) {
    Json config = entry["config"];
    if (!config.contains("rounding")) config["rounding"] = "NONE"; // plain LAX
    Json outputs = entry["outputs"];
    if (outputs.empty()) outputs = entry.value("true", Json::array());
    const Program source = primitive_program(entry);
    const ScaledProgram program(source, entry["inputs"], outputs, policy_of(config));
    const std::vector<Tensor> inputs = read_tensors(suite, entry["inputs"]);
    const std::vector<Tensor> results = program.run(inputs), meant = meaning(source, inputs);
    const std::vector<Tensor> expected = read_tensors(suite, entry["outputs"]);
    const bool is_f32 = entry["inputs"].size() > 0 && entry["inputs"][0]["dtype"] == "f32";
    const double ulps = is_f32 && rounds_scales(entry) ? 0x1p13 : ulps_of_scaling;
    const std::string disagreement = differences(results, expected, meant, ulps);
    deviations.judge(entry, disagreement, differences(results, right_values(suite, entry, meant, results), meant));
    EXPECT_EQ(disagreement.empty() ? scale_differences(entry, results, expected) : "", "");
}

/// Cases that upstream refuses and we refuse too.
const std::map<std::string, std::string> refusals{
    {"set_scaling.079.vector_scale", "set_scaling: the scale must have rank 0, got 1 and 0 (a0: f32[4, 7], a1: f32[2])"},
    {"unsupported.005.cumsum", "cumsum.axis: missing attribute"}, // its index names no axis
};

void judge_case(const GoldenSuite &suite, const Deviations &deviations, const Json &entry) {
    SCOPED_TRACE(entry["name"].get<std::string>());
    const auto refusal = refusals.find(entry["name"]);
    std::string message;
    try {
        run_case(suite, deviations, entry);
    } catch (const UserError &error) {
        message = error.what();
    }
    EXPECT_EQ(message, refusal == refusals.end() ? "" : refusal->second);
}

void run_suite(const std::string &name) {
    const auto suite = load_golden(name);
    const Deviations deviations(name, suite.index);
    std::map<std::string, int> lacking;
    int count = 0;
    for (const Json &entry : suite.index["cases"]) {
        const std::string what = missing_of(entry);
        if (!what.empty()) {
            lacking[what]++;
            continue;
        }
        count++;
        judge_case(suite, deviations, entry);
    }
    std::cout << name << ": " << count << " of " << suite.index["cases"].size() << " cases, " << deviations.count() << " deviations\n";
    for (const auto &[what, cases] : lacking) std::cout << "  no " << what << ": " << cases << " cases\n";
}

TEST(primitives, all_cases) { run_suite("primitives"); }
TEST(primitives_lax, all_cases) { run_suite("primitives_lax"); }

} // namespace
} // namespace scalide::test

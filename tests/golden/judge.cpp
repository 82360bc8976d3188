#include "judge.h"
#include <algorithm>
#include <cmath>
#include <fstream>
#include <gtest/gtest.h>
#include <set>
#include <sstream>

namespace scalide::test {

namespace {

/// What may make a case deviate: a flag of the index, or the compat list of the study of upstream, by the words of its reason.
constexpr const char *flags[] = {"upstream_bug", "range_loss", "rounding_loss", "error"};

bool is_flagged(const nlohmann::json &entry) {
    return std::ranges::any_of(flags, [&](const char *flag) { return entry.contains(flag) && !entry[flag].is_null(); });
}

bool is_compat(const std::string &reason) { return reason.starts_with("compat "); }

bool has_format(Dtype dtype) { return is_float(dtype) && dtype != Dtype::f64; }

/// Where upstream's scale or data leaves the range of f32, ours may still hold the value: as data beyond f32, or below it.
bool is_out_of_range(double value, double expected) {
    if (std::signbit(value) != std::signbit(expected)) return false;
    return expected == 0 ? std::fabs(value) < 0x1p-149 : std::isinf(expected) && std::fabs(value) >= 0x1p128;
}

bool agree(double got, double expected, double allowed) {
    if (std::isnan(got) || std::isnan(expected)) return std::isnan(got) && std::isnan(expected);
    return got == expected || std::fabs(got - expected) <= allowed;
}

} // namespace

double ulp(const Tensor &like, double value) {
    const Dtype dtype = like.data.dtype;
    const double scale = like.scale.value_or(1), data = scale == 0 ? 0 : value / scale;
    if (!has_format(dtype) || !std::isfinite(scale) || !std::isfinite(data)) return 0;
    const FormatSpec &format = format_of(dtype);
    const int smallest = 1 - format.bias, exponent = data == 0 ? smallest : std::ilogb(data);
    if (dtype == Dtype::f32 && exponent <= smallest) return std::ldexp(scale, smallest);
    return std::ldexp(scale, std::max(exponent, smallest) - format.mantissa_bits);
}

std::string difference(const Tensor &got, const Tensor &expected, const Tensor &meaning, double ulps) {
    if (got.data.shape != expected.data.shape) return "another shape";
    const std::vector<double> values = got.values(), right = expected.values(), &error = meaning.data.error;
    for (size_t i = 0; i < values.size(); i++) {
        const double allowed = ulps * std::max(ulp(got, right[i]), ulp(expected, right[i])) + (error.empty() ? 0 : error[i]);
        if (agree(values[i], right[i], allowed) || is_out_of_range(values[i], right[i])) continue;
        std::ostringstream words;
        words.precision(9);
        words << "element " << i << ": got " << values[i] << ", expected " << right[i] << " +- " << allowed;
        return words.str();
    }
    return "";
}

Tensor as_held_by(const Tensor &like, const Tensor &exact) {
    Tensor held{exact.data, std::nullopt};
    const double scale = like.scale.value_or(1);
    if (like.data.dtype == Dtype::i32)
        for (double &value : held.data.data) value = std::clamp(std::trunc(value), -0x1p31, 0x1p31 - 1);
    if (scale == 0 || !std::isfinite(scale) || !has_format(like.data.dtype)) return held;
    for (double &value : held.data.data) value = round_to(like.data.dtype, value / scale, Overflow::format) * scale;
    return held;
}

Deviations::Deviations(const std::string &suite, const nlohmann::json &index) {
    std::ifstream file(std::string(SCALIDE_TESTS_DIR) + "/golden/deviations/" + suite + ".txt");
    for (std::string line; std::getline(file, line);) {
        const size_t space = line.find(' ');
        if (!line.empty() && line[0] != '#') reasons_[line.substr(0, space)] = line.substr(std::min(space, line.size() - 1) + 1);
    }
    std::set<std::string> names;
    for (const nlohmann::json &entry : index["cases"]) names.insert(entry["name"]);
    for (const auto &[name, reason] : reasons_) EXPECT_TRUE(names.contains(name)) << "no case " << name << " in " << suite;
}

void Deviations::judge(const nlohmann::json &entry, const std::string &disagreement, const std::string &mistake) const {
    const std::string name = entry["name"];
    const auto line = reasons_.find(name);
    if (line == reasons_.end()) {
        EXPECT_EQ(disagreement, "") << name << (is_flagged(entry) ? " (flagged)" : "") << ", " << (mistake.empty() ? "but right" : mistake);
        return;
    }
    EXPECT_NE(disagreement, "") << name << " agrees with upstream: its deviation (" << line->second << ") is not needed";
    EXPECT_TRUE(is_flagged(entry) || is_compat(line->second)) << name << " may not deviate";
    EXPECT_EQ(mistake, "") << name << " (" << line->second << ") is not right";
}

} // namespace scalide::test

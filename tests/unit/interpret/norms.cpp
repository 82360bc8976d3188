#include "fixture.h"
#include <cmath>
#include <gtest/gtest.h>

// Normalisations by their definitions in loops: a composite's laws compare it with itself.
namespace scalide {

TEST(interpret, group_norm_has_mean_and_variance_of_each_image_and_group) {
    constexpr int images = 2, places = 3, features = 4, groups = 2, in_group = features / groups;
    constexpr double epsilon = 0.25;
    Array x = f32_array({images, places, features}, {}), gain = f32_array({features}, {1, -2, 0.5, 3}),
          bias = f32_array({features}, {0.5, 0, -1, 2});
    for (int i = 0; i < images * places * features; i++) x.data.push_back((i * 7 % 11) - 4.0 + i / 8);
    const auto place = [](int image, int at, int feature) { return size_t((image * places + at) * features + feature); };
    std::vector<double> expected(x.data.size());
    for (int image = 0; image < images; image++) {
        for (int group = 0; group < groups; group++) {
            double sum = 0, squares = 0;
            const auto each = [&](const auto &visit) {
                for (int at = 0; at < places; at++)
                    for (int f = group * in_group; f < (group + 1) * in_group; f++) visit(place(image, at, f), f);
            };
            each([&](size_t i, int) { sum += x.data[i]; });
            const double mean = sum / (places * in_group);
            each([&](size_t i, int) { squares += (x.data[i] - mean) * (x.data[i] - mean); });
            const double deviation = std::sqrt(squares / (places * in_group) + epsilon);
            each([&](size_t i, int f) { expected[i] = (x.data[i] - mean) / deviation * gain.data[f] + bias.data[f]; });
        }
    }
    const std::string text = "program p(x: f32[2, 3, 4], g: f32[4], b: f32[4]) -> (y: f32[2, 3, 4]) {\n"
                             "  y = group_norm(x, g, b) {groups: 2, epsilon: 0.25} : f32[2, 3, 4]\n}\n";
    const std::vector<double> got = run(text, {x, gain, bias}, Mode::real, Rulebook::load({SCALIDE_RULES_DIR})).at(0).data;
    for (size_t i = 0; i < expected.size(); i++) EXPECT_NEAR(got[i], expected[i], 1e-12) << i; // f64 sums of six terms
}

} // namespace scalide

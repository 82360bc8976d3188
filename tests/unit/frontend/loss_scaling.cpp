#include "frontend/loss_scaling.h"
#include "support/fragments/fragment_run.h"
#include "words_of.h"
#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>

// Loss scalers: those of jmp, repeated attempts, auxiliary results and messages. tests/golden compares jaxamp and Flax.
using namespace scalide;

namespace {

using Arrays = std::map<std::string, Array>;

/// The loss x * x * x of an f16 number, or of f32, and a scaler.
FragmentRun cubed(const LossScaler &described, Dtype dtype, bool has_aux = false) {
    return FragmentRun([=] {
        LossScaler scaler = described;
        const Input<Tensor> x("x", dtype, {});
        const std::vector<Tensor> aux = has_aux ? std::vector<Tensor>{Input<Tensor>("aux", f32, {})} : std::vector<Tensor>{};
        const auto [is_finite, value, gradients] = scaler.value_and_grad(x * x * x, {x}, aux);
        Output<Tensor> finite("finite", boolean, {}), loss("loss", value.dtype(), {}), gradient("gradient", gradients[0].dtype(), {});
        finite = is_finite;
        loss = value;
        gradient = gradients[0];
    });
}

} // namespace

TEST(frontend, the_dynamic_scale_of_jmp) {
    FragmentRun run([] {
        const Input<Tensor> finite("finite", boolean, {});
        dynamic_loss_scale({.loss_scale = 8, .period = 3, .factor = 4, .min_loss_scale = 2}, "s").adjust(finite);
    });
    std::vector<double> scales, counters;
    for (const double finite : {1, 1, 1, 1, 0, 0, 0, 1, 0, 1, 1, 1}) {
        run.step({{"finite", scalar_array(finite, boolean)}});
        scales.push_back(run.states["s.loss_scale"].data[0]);
        counters.push_back(run.states["s.counter"].data[0]);
    }
    EXPECT_EQ(scales, (std::vector<double>{8, 8, 32, 32, 8, 2, 2, 2, 2, 2, 2, 8}));
    EXPECT_EQ(counters, (std::vector<double>{1, 2, 0, 1, 0, 0, 0, 1, 0, 1, 2, 0}));
    run.states["s.loss_scale"].data[0] = 0x1p127; // four times that is infinite
    for (int i = 0; i < 3; i++) run.step({{"finite", scalar_array(1, boolean)}});
    EXPECT_EQ(run.states["s.loss_scale"].data[0], 0x1p127);
}

TEST(frontend, static_scales) {
    FragmentRun none = cubed(no_op_loss_scale(), f16), scaled = cubed(static_loss_scale(1024), f16);
    EXPECT_EQ(std::ranges::count(none.program().arguments, true, &Argument::inout), 0);
    const Array small{Dtype::f16, {}, {0x1p-13}};
    const Arrays without = none.step({{"x", small}}), with = scaled.step({{"x", small}});
    EXPECT_EQ(without.at("gradient").dtype, f16);
    EXPECT_EQ(without.at("gradient").data[0], 0) << "3 * 2^-26 is less than half of the smallest f16";
    EXPECT_EQ(with.at("finite").data[0], 1);
    // The gradient keeps its dtype, so it is lost again where it is unscaled. jmp recommends f32 parameters.
    EXPECT_EQ(with.at("gradient").dtype, f16);
}

TEST(frontend, gradients_are_unscaled_in_f32) {
    FragmentRun run = cubed(flax_dynamic_scale({.scale = 4096}, "s"), f16);
    const Arrays outputs = run.step({{"x", {Dtype::f16, {}, {0x1.8p-10}}}});
    EXPECT_EQ(outputs.at("gradient").dtype, f32);
    EXPECT_EQ(outputs.at("gradient").data[0], 6.75 * 0x1p-20);
    EXPECT_EQ(run.states["s.fin_steps"].data[0], 1);
}

/// Each attempt has half the scale: 30^3 * 2 is the first product that f16 holds.
TEST(frontend, attempts_are_repeated_until_one_is_finite) {
    for (const int64_t redo : {0, 3, 5, 20}) {
        FragmentRun run = cubed(dynamic_scaler({.scaler = 64, .redo_on_nan = redo}, "s"), f16);
        const Arrays outputs = run.step({{"x", {Dtype::f16, {}, {30}}}});
        const double attempts = std::min<double>(static_cast<double>(redo) + 1, 6);
        const bool is_finite = attempts == 6;
        EXPECT_EQ(outputs.at("finite").data[0], is_finite) << redo;
        EXPECT_EQ(run.states["s.scaler"].data[0], is_finite ? 2 : 64 / std::exp2(attempts)) << redo;
        EXPECT_EQ(run.states["s.total_resets"].data[0], is_finite ? 5 : attempts) << redo;
        EXPECT_EQ(run.states["s.count"].data[0], is_finite) << redo;
        if (is_finite) {
            EXPECT_EQ(outputs.at("loss").data[0], 27008) << "27000, rounded to f16";
            EXPECT_EQ(outputs.at("gradient").data[0], 2700);
        }
    }
}

TEST(frontend, auxiliary_results_are_tested_by_jaxamp_alone) {
    FragmentRun jaxamp = cubed(dynamic_scaler({}, "s"), f32, true), flax = cubed(flax_dynamic_scale({}, "s"), f32, true);
    const Arrays inputs{{"x", scalar_array(1)}, {"aux", scalar_array(HUGE_VAL)}};
    EXPECT_EQ(jaxamp.step(inputs).at("finite").data[0], 0);
    EXPECT_EQ(flax.step(inputs).at("finite").data[0], 1);
    EXPECT_EQ(jaxamp.states["s.scaler"].data[0], 16384);
}

TEST(frontend, scales_by_hand) {
    FragmentRun run([] {
        const Input<Tensor> x("x", f32, {2});
        LossScaler scaler = dynamic_loss_scale({.loss_scale = 4, .period = 1}, "s");
        Output<Tensor> scaled("scaled", f32, {2}), unscaled("unscaled", f32, {2}), scale("scale", f32, {}), chosen("chosen", f32, {2});
        scale = scaler.loss_scale();
        scaled = scaler.scale(x);
        unscaled = scaler.unscale({x})[0];
        const Tensor finite = all_finite({x, apply("iota", {}, {{"dtype", "i32"}, {"shape", to_attribute(Extents{3})}, {"dimension", 0}})});
        chosen = select_tree(finite, {x}, {x * x})[0];
        scaler.adjust(finite);
    });
    const Arrays outputs = run.step({{"x", {Dtype::f32, {2}, {1, 3}}}});
    EXPECT_EQ(outputs.at("scale").data[0], 4);
    EXPECT_EQ(outputs.at("scaled").data, (std::vector<double>{4, 12}));
    EXPECT_EQ(outputs.at("unscaled").data, (std::vector<double>{0.25, 0.75}));
    EXPECT_EQ(outputs.at("chosen").data, (std::vector<double>{1, 3}));
    EXPECT_EQ(run.states["s.loss_scale"].data[0], 8);
    const Arrays infinite = run.step({{"x", {Dtype::f32, {2}, {-HUGE_VAL, 3}}}});
    EXPECT_EQ(infinite.at("chosen").data, (std::vector<double>{HUGE_VAL, 9}));
    EXPECT_EQ(run.states["s.loss_scale"].data[0], 4);
}

TEST(frontend, loss_scaling_errors) {
    const auto error_of = [](const std::function<void(const Tensor &)> &body) {
        return words_of_error([&] { FragmentRun([&] { body(Input<Tensor>("x", f32, {2})); }); });
    };
    EXPECT_EQ(error_of([](const Tensor &x) { flax_dynamic_scale({}, "s").value_and_grad(x * x, {x}); }),
              "s: the loss must be a float scalar, got f32[2]. Use mean()");
    EXPECT_EQ(error_of([](const Tensor &x) {
                  select_tree(all_finite({x}), {x, x}, {x});
              }),
              "select_tree: there must be as many tensors for true as for false, got 2 and 1");
}

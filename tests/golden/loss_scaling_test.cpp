#include "frontend/loss_scaling.h"
#include "judge.h"
#include "support/fragments/fragment_run.h"
#include <cmath>
#include <gtest/gtest.h>
#include <iostream>

// Loss scaling of jaxamp and Flax, written with the C++ DSL, in the interpreter: the state after each step, and the gradients, bit by bit.

namespace scalide::test {
namespace {

using Json = nlohmann::json;
using Arrays = std::map<std::string, Array>;

LossScaler scaler_of(const Json &entry) {
    const Json &a = entry["attrs"];
    if (entry["op"] == "loss_scale_jaxamp")
        return dynamic_scaler(
            {.patience = a["patience"], .adjust_factor = a["adjust_factor"], .scaler = a["init"], .redo_on_nan = a["redo_on_nan"]}, "s");
    FlaxDynamicScale options{.growth_factor = a.value("growth_factor", 2.0),
                             .backoff_factor = a.value("backoff_factor", 0.5),
                             .growth_interval = a["growth_interval"],
                             .scale = a["init"]};
    if (a.contains("minimum_scale")) options.minimum_scale.reset();
    if (a.contains("minimum_scale") && !a["minimum_scale"].is_null()) options.minimum_scale = a["minimum_scale"].get<double>();
    return flax_dynamic_scale(options, "s");
}

/// Compares rows of a case: columns are states, or outputs of the program.
void expect_row(const FragmentRun &run, const Arrays &outputs, const Json &columns, const Array &rows, size_t step) {
    for (size_t column = 0; column < columns.size(); column++) {
        const std::string name = columns[column];
        const auto state = run.states.find("s." + name);
        const double got = (state == run.states.end() ? outputs.at(name) : state->second).data.at(0);
        const double expected = rows.data[step * columns.size() + column];
        if (std::isnan(expected))
            EXPECT_TRUE(std::isnan(got)) << name << " in step " << step << ": " << got;
        else
            EXPECT_EQ(got, expected) << name << " in step " << step;
    }
}

/// sum(w * x), with respect to w.
void run_product(const GoldenSuite &suite, const Json &entry) {
    const bool is_grad = entry["attrs"]["variant"] == "jaxamp_grad";
    FragmentRun run([&] {
        const Input<scalide::Tensor> x("x", f32, {4}), w("w", f32, {4});
        LossScaler scaler = scaler_of(entry);
        const scalide::Tensor loss = scalide::apply("reduce_sum", {w * x});
        const ScaledGradients results = is_grad ? scaler.grad(loss, {w}) : scaler.value_and_grad(loss, {w});
        Output<scalide::Tensor> finite("is_finite", boolean, {}), grads("grads", f32, {4});
        finite = results.finite;
        grads = results.gradients[0];
    });
    const Array x = read_tensor(suite, entry["inputs"][0]).data, w = read_tensor(suite, entry["inputs"][1]).data;
    const Array rows = read_tensor(suite, entry["outputs"][0]).data, gradients = read_tensor(suite, entry["outputs"][1]).data;
    for (size_t step = 0; step < static_cast<size_t>(rows.shape[0]); step++) {
        const auto row = x.data.begin() + static_cast<int64_t>(4 * step);
        const Arrays outputs = run.step({{"x", {Dtype::f32, {4}, {row, row + 4}}}, {"w", w}});
        // The first scale of Flax is a Python float, so its first step multiplies in f64.
        if (step == 0 && entry["op"] == "loss_scale_flax") {
            double &scale = run.states.at("s.scale").data[0];
            EXPECT_NEAR(scale, rows.data[0], scale * 0x1p-23);
            scale = rows.data[0];
        }
        expect_row(run, outputs, entry["columns"], rows, step);
        for (size_t i = 0; i < 4; i++) {
            const double got = outputs.at("grads").data[i], expected = gradients.data[4 * step + i];
            EXPECT_TRUE(got == expected || (std::isnan(got) && std::isnan(expected))) << "step " << step << ": " << got << ", " << expected;
        }
    }
}

/// x^3 in f16. The state begins anew in no step: the scale settles.
void run_cube(const GoldenSuite &suite, const Json &entry) {
    FragmentRun run([&] {
        const Input<scalide::Tensor> x("x", f16, {});
        LossScaler scaler = scaler_of(entry);
        const auto [finite, value, gradients] = scaler.value_and_grad(scalide::apply("integer_pow", {x}, {{"y", 3}}), {x});
        Output<scalide::Tensor> value_out("value", f32, {}), grad_out("grad", f32, {});
        value_out = value;
        grad_out = gradients[0];
    });
    const Array x = read_tensor(suite, entry["inputs"][0]).data, rows = read_tensor(suite, entry["outputs"][0]).data;
    for (size_t step = 0; step < static_cast<size_t>(rows.shape[0]); step++)
        expect_row(run, run.step({{"x", x}}), entry["columns"], rows, step);
}

/// The state alone: finite in steps 4 and 9.
void run_state(const GoldenSuite &suite, const Json &entry) {
    FragmentRun run([&] {
        const Input<scalide::Tensor> finite("finite", boolean, {});
        Output<scalide::Tensor> is_finite("is_finite", boolean, {});
        scaler_of(entry).adjust(finite);
        is_finite = finite;
    });
    const Array rows = read_tensor(suite, entry["outputs"][0]).data;
    for (size_t step = 0; step < static_cast<size_t>(rows.shape[0]); step++) {
        const double finite = rows.data[3 * step + 2];
        expect_row(run, run.step({{"finite", scalar_array(finite, boolean)}}), entry["columns"], rows, step);
    }
}

} // namespace

TEST(loss_scaling, scalers) {
    const GoldenSuite suite = load_golden("loss_scaling");
    size_t count = 0;
    for (const Json &entry : suite.index["cases"]) {
        if (entry["op"] == "amp_policy") continue;
        SCOPED_TRACE(entry["name"].get<std::string>());
        (entry["attrs"].contains("variant") ? run_product : entry["inputs"].empty() ? run_state : run_cube)(suite, entry);
        count++;
    }
    EXPECT_GE(count, 40U);
    std::cout << "loss_scaling: " << count << " cases of scalers\n";
}

} // namespace scalide::test

#include "frontend/optimizers.h"
#include "support/fragments/fragment_run.h"
#include "support/programs/rules.h"
#include "words_of.h"
#include <cmath>
#include <gtest/gtest.h>

// Optimizers as compositions: their states, refused updates, accumulation, masks and messages. tests/golden compares their numbers with
// optax.
using namespace scalide;

namespace {

using Arrays = std::map<std::string, Array>;

Array vector_of(const std::vector<double> &values, Dtype dtype = Dtype::f32) {
    return {dtype, {static_cast<int64_t>(values.size())}, values};
}

/// Two parameters, w of two elements and b of one, and an optimizer. `finite` is an input if the update may be refused.
FragmentRun trained(const Optimizer &optimizer, bool may_refuse = false, Dtype dtype = f32) {
    return FragmentRun([=] {
        State<Tensor> w("w", dtype, {2}), b("b", dtype, {1});
        const Input<Tensor> dw("dw", dtype, {2}), db("db", dtype, {1});
        if (may_refuse)
            optimizer.apply_if(Input<Tensor>("finite", boolean, {}), {dw, db}, {&w, &b}, "o");
        else
            optimizer.apply({dw, db}, {&w, &b}, "o");
    });
}

Arrays gradients(double a, double b, double c, Dtype dtype = Dtype::f32) {
    return {{"dw", vector_of({a, b}, dtype)}, {"db", vector_of({c}, dtype)}};
}

std::vector<std::string> state_names(const FragmentRun &run) {
    std::vector<std::string> names;
    for (const Argument &argument : run.program().arguments)
        if (argument.inout) names.push_back(run.program().value_name(argument.value));
    return names;
}

bool chooses_w(const std::string &name, const Type &) { return name == "w"; }

double nan_value() { return std::nan(""); }

} // namespace

TEST(frontend, optimizers_declare_named_states) {
    using Names = std::vector<std::string>;
    EXPECT_EQ(state_names(trained(sgd({.learning_rate = 1}))), (Names{"w", "b"}));
    EXPECT_EQ(state_names(trained(adamw({.learning_rate = 1}))), (Names{"w", "b", "o.count", "o.mu.w", "o.nu.w", "o.mu.b", "o.nu.b"}));
    EXPECT_EQ(state_names(trained(chain({trace(0.9), trace(0.5)}))),
              (Names{"w", "b", "o.trace.w", "o.trace.b", "o.trace1.w", "o.trace1.b"}));
    EXPECT_EQ(state_names(trained(masked(trace(0.9), chooses_w))), (Names{"w", "b", "o.trace.w"}));
    // A schedule and Adam count the same updates.
    EXPECT_EQ(state_names(trained(chain({scale_by_adam({}), scale(linear_schedule({1, 0, 10}))}))),
              (Names{"w", "b", "o.count", "o.mu.w", "o.nu.w", "o.mu.b", "o.nu.b"}));
    const FragmentRun adam_bf16 = trained(adam({.learning_rate = 1, .mu_dtype = bf16}), false, f16);
    EXPECT_EQ(adam_bf16.states.at("o.mu.w").dtype, bf16);
    EXPECT_EQ(adam_bf16.states.at("o.nu.w").dtype, f16);
    EXPECT_EQ(adam_bf16.states.at("o.count").dtype, i32);
}

TEST(frontend, a_refused_update_changes_nothing) {
    const Optimizer inner = adamw({.learning_rate = linear_schedule({0.1, 0, 10}), .weight_decay = 0.1});
    for (const Optimizer &optimizer : {chain({clip_by_global_norm(1), inner}), multi_steps(inner, {.every_k = 2}),
                                       apply_if_finite(inner, 2), muon({.learning_rate = 0.1}), adafactor({.learning_rate = 0.1})}) {
        FragmentRun run = trained(optimizer, true);
        const auto step = [&](double finite, double a) {
            Arrays inputs = gradients(a, 1, 2);
            inputs["finite"] = scalar_array(finite, boolean);
            run.step(inputs);
        };
        step(1, 0.5);
        step(1, 0.25);
        const Arrays before = run.states;
        for (const double wrong : {nan_value(), HUGE_VAL, 1.0}) step(0, wrong);
        for (const auto &[name, state] : before) EXPECT_EQ(run.states.at(name).data, state.data) << name;
        step(1, 0.5);
        step(1, 0.5); // an update needs two microbatches
        EXPECT_NE(run.states.at("o.count").data, before.at("o.count").data);
    }
}

TEST(frontend, the_count_of_updates_saturates) {
    FragmentRun run = trained(adam({.learning_rate = 0.1}));
    run.states["o.count"].data[0] = INT32_MAX - 1;
    for (int i = 0; i < 3; i++) {
        run.step(gradients(1, 1, 1));
        EXPECT_EQ(run.states["o.count"].data[0], INT32_MAX);
        EXPECT_TRUE(std::isfinite(run.states["w"].data[0]));
    }
}

/// eps of 1e-8 is 0 in f16, and optax then divides 0 by 0.
TEST(frontend, eps_is_added_in_f32) {
    FragmentRun run = trained(adam({.learning_rate = 1}), false, f16);
    run.step(gradients(0, 1, -1, f16));
    EXPECT_EQ(run.states["w"].data, (std::vector<double>{0, -1}));
    EXPECT_EQ(run.states["b"].data, (std::vector<double>{1}));
}

TEST(frontend, microbatches_are_accumulated) {
    const Optimizer inner = adam({.learning_rate = 0.1});
    FragmentRun mean = trained(multi_steps(inner, {.every_k = 3})),
                sum = trained(multi_steps(inner, {.every_k = 3, .use_grad_mean = false})), whole = trained(inner);
    for (int update = 0; update < 2; update++) {
        const Arrays before = mean.states;
        for (int i = 0; i < 3; i++) {
            EXPECT_EQ(mean.states["w"].data, before.at("w").data);
            EXPECT_EQ(mean.states["o.mini_step"].data[0], i);
            mean.step(gradients(i, 4 * i - 4, 2));
            sum.step(gradients(i / 4.0, i - 1, 0.5));
        }
        whole.step(gradients(1, 0, 2));
        EXPECT_EQ(mean.states["o.gradient_step"].data[0], update + 1);
        for (const char *name : {"w", "b", "o.mu.w", "o.nu.b", "o.count"})
            for (size_t i = 0; i < whole.states[name].data.size(); i++)
                EXPECT_NEAR(mean.states[name].data[i], whole.states[name].data[i], 1e-6) << name;
        EXPECT_NEAR(sum.states["o.mu.b"].data[0], 1.5 / 2 * mean.states["o.mu.b"].data[0], 1e-6);
        EXPECT_EQ(mean.states["o.acc_grads.w"].data, (std::vector<double>{0, 0}));
    }
}

TEST(frontend, the_number_of_microbatches_may_change) {
    const Schedule every([](const Tensor &updates) { return updates + 1; });
    FragmentRun run = trained(multi_steps(sgd({.learning_rate = 1}), {.every_k = every, .skip_not_finite = true}));
    std::vector<double> values;
    for (int i = 0; i < 6; i++) {
        run.step(gradients(1, i == 2 ? HUGE_VAL : 0, 0)); // step 2 does not count
        values.push_back(-run.states["w"].data[0]);
    }
    EXPECT_EQ(values, (std::vector<double>{1, 1, 1, 2, 2, 2}));
    EXPECT_EQ(run.states["w"].data[1], 0);
}

TEST(frontend, masks_choose_parameters) {
    FragmentRun run = trained(partition(chooses_w, scale(-2), sgd({.learning_rate = 10, .momentum = 0.5})));
    run.step(gradients(1, 2, 3));
    run.step(gradients(1, 2, 3));
    EXPECT_EQ(run.states["w"].data, (std::vector<double>{-4, -8}));
    EXPECT_EQ(run.states["b"].data, (std::vector<double>{-75}));
    FragmentRun decayed = trained(chain({masked(scale(0), chooses_w), add_decayed_weights(0.5, chooses_w)}));
    decayed.states["w"].data = {2, 4};
    decayed.states["b"].data = {6};
    decayed.step(gradients(1, 1, 1));
    EXPECT_EQ(decayed.states["w"].data, (std::vector<double>{3, 6}));
    EXPECT_EQ(decayed.states["b"].data, (std::vector<double>{7}));
}

TEST(frontend, clipping) {
    FragmentRun by_value = trained(clip(1)), small = trained(clip_by_global_norm(20)), large = trained(clip_by_global_norm(6.5));
    for (FragmentRun *run : {&by_value, &small, &large}) run->step(gradients(3, -4, 12));
    EXPECT_EQ(by_value.states["w"].data, (std::vector<double>{1, -1}));
    EXPECT_EQ(small.states["w"].data, (std::vector<double>{3, -4}));
    EXPECT_NEAR(large.states["w"].data[0], 1.5, 1e-6);
    EXPECT_NEAR(large.states["b"].data[0], 6, 1e-6);
    FragmentRun zeros = trained(clip_by_global_norm(1));
    zeros.step(gradients(0, 0, 0));
    EXPECT_EQ(zeros.states["w"].data, (std::vector<double>{0, 0}));
}

TEST(frontend, after_many_errors_an_update_is_applied) {
    FragmentRun run = trained(apply_if_finite(sgd({.learning_rate = 1}), 1));
    run.step(gradients(nan_value(), 0, 1));
    EXPECT_EQ(run.states["b"].data[0], 0);
    run.step(gradients(nan_value(), 0, 1));
    EXPECT_EQ(run.states["b"].data[0], -1);
    EXPECT_TRUE(std::isnan(run.states["w"].data[0]));
    EXPECT_EQ(run.states["o.total_notfinite"].data[0], 2);
}

TEST(frontend, learning_rates_of_the_program) {
    FragmentRun run([] {
        State<Tensor> w("w", f32, {2});
        const Input<Tensor> rate("rate", f32, {}), dw("dw", f32, {2});
        sgd({.learning_rate = rate}).apply({dw}, {&w});
    });
    run.step({{"rate", scalar_array(0.5)}, {"dw", vector_of({1, 2})}});
    EXPECT_EQ(run.states["w"].data, (std::vector<double>{-0.5, -1}));
    FragmentRun joined = trained(scale(join_schedules({1.0, linear_schedule({2, 4, 2}), 8.0}, {1, 3})));
    std::vector<double> values;
    for (int i = 0; i < 5; i++) {
        joined.step(gradients(1, 0, 0));
        values.push_back(joined.states["w"].data[0]);
    }
    EXPECT_EQ(values, (std::vector<double>{1, 3, 6, 14, 22}));
}

TEST(frontend, optimizers_of_your_own) {
    const Optimizer rounds([](OptimizerStep &step, const std::vector<Tensor> &updates) {
        State<Tensor> &sum = step.add_state("sum", Type{Dtype::f32, {}});
        step.assign(sum, sum + apply("reduce_sum", {updates[0]}));
        return std::vector<Tensor>{apply("round", {updates[0]}), updates[1]};
    });
    FragmentRun run = trained(rounds);
    run.step(gradients(1.25, 2.75, 3.5));
    EXPECT_EQ(run.states["w"].data, (std::vector<double>{1, 3}));
    EXPECT_EQ(run.states["b"].data, (std::vector<double>{3.5}));
    EXPECT_EQ(run.states["o.sum"].data[0], 4);
}

TEST(frontend, optimizer_errors) {
    const Optimizer optimizer = sgd({.learning_rate = 1});
    const auto apply_to = [&](const Dimensions &shape, Dtype dtype, int count, const Optimizer &used) {
        return words_of_error([&] {
            FragmentRun([&] {
                State<Tensor> w("w", dtype, {2});
                used.apply(std::vector<Tensor>(count, Input<Tensor>("g", f32, shape)), {&w}, "o");
            });
        });
    };
    EXPECT_EQ(apply_to({2}, f32, 2, optimizer),
              "optimizer: there must be one gradient for each parameter, got 2 gradients and 1 parameters. "
              "Call states() before you declare other states");
    EXPECT_EQ(apply_to({3}, f32, 1, optimizer), "w: the gradient must have the shape [2], got [3]");
    EXPECT_EQ(apply_to({2}, i32, 1, optimizer), "w: a parameter must be a float, got i32[2]. Leave it out");
    const Optimizer none([](OptimizerStep &, const std::vector<Tensor> &) { return std::vector<Tensor>(); });
    EXPECT_EQ(apply_to({2}, f32, 1, none), "optimizer: a transformation must return one update for each of the 1 gradients, got 0");
}

TEST(frontend, schedule_errors) {
    EXPECT_EQ(words_of_error([] { cosine_decay_schedule({1, 0}); }), "cosine_decay_schedule: decay_steps must be positive, got 0");
    EXPECT_EQ(words_of_error([] {
                  warmup_cosine_decay_schedule({0, 1, 10, 10});
              }),
              "warmup_cosine_decay_schedule: decay_steps - warmup_steps must be positive, got 0");
    EXPECT_EQ(words_of_error([] {
                  linear_onecycle_schedule({0, 1});
              }),
              "linear_onecycle_schedule: transition_steps must be positive, got 0");
    EXPECT_EQ(words_of_error([] {
                  cosine_onecycle_schedule({-1, 1});
              }),
              "cosine_onecycle_schedule: transition_steps must be positive, got -1");
    EXPECT_EQ(words_of_error([] {
                  piecewise_constant_schedule({1, {{5, -1}}});
              }),
              "piecewise_constant_schedule: the factor at 5 must not be negative, got -1.000000");
    EXPECT_EQ(words_of_error([] {
                  join_schedules({1.0, 2.0}, {});
              }),
              "join_schedules: there must be one boundary between two schedules, got 2 schedules and 0 boundaries");
    // As in optax, a schedule without steps is constant.
    EXPECT_TRUE(linear_schedule({1, 2, 0}).is_constant());
    EXPECT_TRUE(exponential_decay({1, 0, 0.5}).is_constant());
}

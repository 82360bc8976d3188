#include "frontend/loops.h"
#include "support/fragments/fragment_run.h"
#include "support/programs/rules.h"
#include "words_of.h"
#include <cmath>
#include <gtest/gtest.h>

// Loops and branches of the DSL: what their functions return, what they take from outside, gradients and messages.
using namespace scalide;

namespace {

using Arrays = std::map<std::string, Array>;

Array f32_of(std::vector<int64_t> shape, std::vector<double> data) { return {Dtype::f32, std::move(shape), std::move(data)}; }

Tensor times(const Tensor &a, const Tensor &b) { return a * b; }

std::string message_of(const std::function<void()> &body) {
    try {
        FragmentRun run(body);
    } catch (const UserError &error) {
        const Message &message = error.message();
        return message.subject + (message.subject.empty() ? "" : ": ") + message.requirement +
               (message.got.empty() ? "" : ", got " + message.got);
    }
    return "no error";
}

} // namespace

TEST(frontend, a_scan_carries_a_tree_and_stacks_results) {
    FragmentRun run([] {
        const Input<Tensor> w("w", f32, {2}), xs("xs", f32, {3, 2});
        const std::array<Tensor, 2> start{w, w};
        const auto [last, ys] = scan(
            [&](const std::array<Tensor, 2> &carry, const Tensor &x) {
                const std::array<Tensor, 2> next{carry[1], carry[0] + w * x}; // w comes from outside
                return std::pair(next, std::map<std::string, Tensor>{{"x", x}, {"first", carry[0]}});
            },
            start, xs);
        Output<Tensor> a("a", f32, {2}), b("b", f32, {2}), first("first", f32, {3, 2}), x("x", f32, {3, 2});
        a = last[0];
        b = last[1];
        first = ys.at("first");
        x = ys.at("x");
    });
    const Arrays out = run.step({{"w", f32_of({2}, {1, 2})}, {"xs", f32_of({3, 2}, {1, 1, 2, 2, 3, 3})}});
    EXPECT_EQ(out.at("a").data, (std::vector<double>{3, 6}));
    EXPECT_EQ(out.at("b").data, (std::vector<double>{1 + 1 + 3, 2 + 2 + 6}));
    EXPECT_EQ(out.at("x").data, (std::vector<double>{1, 1, 2, 2, 3, 3}));
    EXPECT_EQ(out.at("first").data, (std::vector<double>{1, 2, 1, 2, 2, 4}));
}

TEST(frontend, a_scan_backwards_with_the_number_of_the_element) {
    FragmentRun run([] {
        const Input<Tensor> x("x", i32, {});
        const std::vector<Tensor> none;
        const auto [last, steps] =
            scan([](const Tensor &step, const Tensor &c, const std::vector<Tensor> &) { return std::pair(2 * c + step, step); }, x, none,
                 {.length = 3, .reverse = true});
        Output<Tensor> y("y", i32, {}), s("s", i32, {3});
        y = last;
        s = steps;
    });
    const Arrays out = run.step({{"x", {Dtype::i32, {}, {1}}}});
    EXPECT_EQ(out.at("y").data[0], 2 * (2 * (2 * 1 + 2) + 1) + 0);
    EXPECT_EQ(out.at("s").data, (std::vector<double>{0, 1, 2}));
}

TEST(frontend, fori_map_and_branches) {
    FragmentRun run([] {
        const Input<Tensor> a("a", f32, {2}), p("p", boolean, {}), i("i", i32, {});
        Output<Tensor> root("root", f32, {2}), negated("negated", f32, {2}), chosen("chosen", f32, {2}), one("one", f32, {});
        root = fori_loop(
            0, 6, [&](const Tensor &, const Tensor &x) { return 0.5 * (x + a / x); }, a);
        negated = scalide::map([](const Tensor &x) { return -x; }, a);
        chosen = cond(
            p, [&] { return a; },
            [&] {
                return fori_loop(
                    1, 3, [&](const Tensor &, const Tensor &x) { return x * a; }, a);
            });
        const std::vector<std::function<Tensor()>> branches{[&] { return apply("reduce_sum", {a}, {}); },
                                                            [&] { return apply("reduce_max", {a}, {}); }};
        one = switch_case(i, branches);
    });
    const auto step = [&](double p, double i) {
        return run.step({{"a", f32_of({2}, {4, 9})}, {"p", scalar_array(p, boolean)}, {"i", {Dtype::i32, {}, {i}}}});
    };
    const Arrays yes = step(1, -1), no = step(0, 5);
    EXPECT_NEAR(yes.at("root").data[1], 3, 1e-5);
    EXPECT_EQ(yes.at("negated").data, (std::vector<double>{-4, -9}));
    EXPECT_EQ(yes.at("chosen").data, (std::vector<double>{4, 9}));
    EXPECT_EQ(no.at("chosen").data, (std::vector<double>{64, 729}));
    EXPECT_EQ(yes.at("one").data[0], 13);
    EXPECT_EQ(no.at("one").data[0], 9);
}

/// Newton's steps for a root, until the square is near enough. The test and the body read different tensors from outside.
TEST(frontend, while_steps_until_its_test_is_false) {
    const auto root = [](std::optional<int64_t> most) {
        return FragmentRun([=] {
            const Input<Tensor> a("a", f32, {}), far("far", f32, {});
            const std::map<std::string, Tensor> start{{"steps", apply("convert_element_type", {0 * a}, {{"dtype", "i32"}})}, {"x", a}};
            const auto last = while_loop([&](const auto &c) { return apply("abs", {c.at("x") * c.at("x") - a}, {}) > far; },
                                         [&](const auto &c) {
                                             const Tensor &x = c.at("x");
                                             return std::map<std::string, Tensor>{{"steps", c.at("steps") + 1}, {"x", 0.5 * (x + a / x)}};
                                         },
                                         start, {.max_steps = most});
            Output<Tensor> x("x", f32, {}), steps("steps", i32, {});
            x = last.at("x");
            steps = last.at("steps");
        });
    };
    const Arrays inputs{{"a", scalar_array(9)}, {"far", scalar_array(0.01)}};
    const Arrays out = root({}).step(inputs);
    EXPECT_NEAR(out.at("x").data[0], 3, 2e-3);
    EXPECT_EQ(out.at("steps").data[0], 4);
    EXPECT_EQ(root(4).step(inputs).at("steps").data[0], 4);
    EXPECT_THROW(root(3).step(inputs), UserError);
}

TEST(frontend, loops_may_ask_for_the_nodes_of_all_steps) {
    FragmentRun run([] {
        const Input<Tensor> xs("xs", f32, {3});
        const Tensor first = apply("reduce_max", {xs}, {});
        const auto [last, none] =
            scan([](const Tensor &c, const Tensor &x) { return std::pair(c + x, std::vector<Tensor>()); }, first, xs, {.unroll = true});
        Output<Tensor> sum("sum", f32, {}), twice("twice", f32, {3}), power("power", f32, {});
        sum = last;
        twice = scalide::map([](const Tensor &x) { return 2 * x; }, xs, {.unroll = true});
        power = fori_loop(0, 3, [](const Tensor &, const Tensor &c) { return 2 * c; }, first, {.remat = true, .unroll = true});
    });
    int loops = 0;
    for (const Node &node : run.program().nodes)
        if (!node.regions.empty()) loops += node.attributes.at("unroll").word == "true";
    EXPECT_EQ(loops, 3);
    const Arrays out = run.step({{"xs", f32_of({3}, {1, 2, 3})}});
    EXPECT_EQ(out.at("sum").data[0], 9);
    EXPECT_EQ(out.at("twice").data, (std::vector<double>{2, 4, 6}));
    EXPECT_EQ(out.at("power").data[0], 24);
}

/// d/dw of w^3 x, and of a branch that returns what it got.
TEST(frontend, loops_and_branches_have_gradients) {
    FragmentRun run([] {
        const Input<Tensor> w("w", f32, {}), x("x", f32, {}), p("p", boolean, {});
        const Tensor y = fori_loop(
            0, 3, [&](const Tensor &, const Tensor &c) { return times(c, w); }, x);
        const Tensor z = cond(
            p, [&] { return y; }, [&] { return w; });
        Output<Tensor> gradient("gradient", f32, {}), inner("inner", f32, {}), value("value", f32, {});
        gradient = grad(z, w);
        // The gradient of a loss inside of a body.
        inner = fori_loop(
            0, 2, [&](const Tensor &, const Tensor &c) { return c - 0.1 * grad(c * c * w, c); }, x);
        value = z;
    });
    const auto step = [&](double p) { return run.step({{"w", scalar_array(2)}, {"x", scalar_array(5)}, {"p", scalar_array(p, boolean)}}); };
    EXPECT_EQ(step(1).at("gradient").data[0], 3 * 4 * 5);
    EXPECT_EQ(step(1).at("value").data[0], 40);
    EXPECT_EQ(step(0).at("gradient").data[0], 1);
    EXPECT_NEAR(step(0).at("inner").data[0], 5 * 0.6 * 0.6, 1e-6);
}

/// A function on gradients works in each step.
TEST(frontend, gradients_of_loops_call_sub_programs) {
    FragmentRun run([] {
        const Input<Tensor> w("w", f32, {});
        const Tensor y = fori_loop(
            0, 3, [&](const Tensor &, const Tensor &c) { return map_on_backward([](const Tensor &g) { return 2 * g; }, c + w); }, w);
        Output<Tensor> gradient("gradient", f32, {});
        gradient = grad(y, w);
    });
    EXPECT_EQ(run.step({{"w", scalar_array(5)}}).at("gradient").data[0], 2 + 4 + 8 + 8);
}

TEST(frontend, a_scan_may_recompute_for_its_gradient) {
    FragmentRun run([] {
        const Input<Tensor> w("w", f32, {}), xs("xs", f32, {3});
        const auto [last, ys] = scan(
            [&](const Tensor &c, const Tensor &x) {
                const Tensor next = times(times(c, w), x);
                return std::pair(next, c);
            },
            w, xs, {.remat = true});
        Output<Tensor> gradient("gradient", f32, {});
        gradient = grad(last, w);
    });
    EXPECT_TRUE(run.program().nodes[0].attributes.contains("remat"));
    EXPECT_EQ(run.step({{"w", scalar_array(2)}, {"xs", f32_of({3}, {1, 2, 3})}}).at("gradient").data[0], 4 * 8 * 6);
}

TEST(frontend, a_loop_reads_states_and_uses_sub_programs) {
    FragmentRun run([] {
        State<Tensor> s("s", f32, {2});
        const Input<Tensor> x("x", f32, {2});
        const Scope outer("outer");
        s = fori_loop(
            0, 2,
            [&](const Tensor &, const Tensor &c) {
                const Scope inner("inner");
                return map_on_backward([](const Tensor &g) { return 2 * g; }, c + x);
            },
            s);
    });
    EXPECT_EQ(run.program().nodes[0].scope, "outer");
    EXPECT_EQ(run.program().nodes[0].regions[0]->nodes[0].scope, "inner");
    run.step({{"x", f32_of({2}, {1, 3})}});
    EXPECT_EQ(run.states.at("s").data, (std::vector<double>{2, 6}));
}

TEST(frontend, messages_of_loops) {
    const auto with_x = [](const std::function<void(const Tensor &)> &body) {
        return message_of([=] { body(Input<Tensor>("x", f32, {3})); });
    };
    EXPECT_EQ(with_x([](const Tensor &x) {
                  fori_loop(
                      0, 3, [&](const Tensor &, const Tensor &c) { return apply("reduce_sum", {c}, {}); }, x);
              }),
              "fori: the carry must keep its type, f32[3], got f32[] after a step");
    EXPECT_EQ(with_x([](const Tensor &x) {
                  scan([](const Tensor &c, const std::vector<Tensor> &) { return std::pair(c, c); }, x, std::vector<Tensor>());
              }),
              "nothing gives the number of steps");
    EXPECT_EQ(with_x([](const Tensor &x) {
                  cond(
                      x, [&] { return x; }, [&] { return x; });
              }),
              "cond.operands: number 0 must be bool[], got f32[3]");
    EXPECT_EQ(with_x([](const Tensor &x) {
                  const Tensor p = apply("reduce_max", {x}, {}) > 0;
                  cond(
                      p, [&] { return x; }, [&] { return apply("reduce_sum", {x}, {}); });
              }),
              "cond.no: must have the result types of yes, f32[3], got f32[]");
    EXPECT_EQ(message_of([] {
                  State<Tensor> s("s", f32, {3});
                  fori_loop(
                      0, 3,
                      [&](const Tensor &, const Tensor &c) {
                          s = c;
                          return c;
                      },
                      s);
              }),
              "cannot assign an Output, a State or a Statistic in the body of a loop or in a branch");
    EXPECT_EQ(with_x([](const Tensor &x) {
                  fori_loop(
                      0, 3, [&](const Tensor &, const Tensor &c) { return c + Input<Tensor>("late", f32, {3}); }, x);
              }),
              "cannot declare an input or a state in the body of a loop or in a branch");
    EXPECT_EQ(with_x([](const Tensor &x) {
                  Tensor kept;
                  fori_loop(
                      0, 3, [&](const Tensor &, const Tensor &c) { return kept = 2 * c; }, x);
                  Output<Tensor> y("y", f32, {3});
                  y = kept;
              }),
              "this tensor belongs to another program");
}

TEST(frontend, messages_of_while) {
    const auto message = [](const auto &test, const auto &body, const WhileOptions &options = {}) {
        return message_of([=] {
            const Input<Tensor> x("x", f32, {3});
            while_loop([&](const Tensor &c) { return test(c); }, [&](const Tensor &c) { return body(c); }, x, options);
        });
    };
    const auto is_small = [](const Tensor &c) { return apply("reduce_max", {c}, {}) < 9; };
    const auto same = [](const Tensor &c) { return c; };
    EXPECT_EQ(message([](const Tensor &c) { return c < 9; }, same), "while.test: must have one result, bool[], got bool[3]");
    EXPECT_EQ(message(is_small, [](const Tensor &c) { return apply("reduce_max", {c}, {}); }),
              "while: the carry must keep its type, f32[3], got f32[] after a step");
    EXPECT_EQ(message(is_small, same, {.max_steps = -1}), "while.max_steps: must be at least 0, got -1");
    const std::string no_gradient = message_of([] {
        const Input<Tensor> w("w", f32, {});
        Output<Tensor> gradient("gradient", f32, {});
        gradient = grad(while_loop([](const Tensor &c) { return c < 9; }, [&](const Tensor &c) { return c + w; }, w), w);
    });
    EXPECT_TRUE(no_gradient.starts_with("while: ")) << no_gradient;
    const std::string assigns = message_of([] {
        State<Tensor> s("s", f32, {});
        const auto assign = [&](const Tensor &c) {
            s = c;
            return c;
        };
        while_loop([&](const Tensor &c) { return assign(c) < 9; }, [&](const Tensor &c) { return c; }, s);
    });
    EXPECT_EQ(assigns, "cannot assign an Output, a State or a Statistic in the body of a loop or in a branch");
}

/// Messages name the line of the user, of the loop or in its body.
TEST(frontend, errors_of_while_have_lines) {
    int line = 0;
    try {
        FragmentRun run([&] {
            const Input<Tensor> x("x", f32, {3});
            line = __LINE__ + 1;
            while_loop([](const Tensor &c) { return c < 9; }, [](const Tensor &c) { return c; }, x);
        });
        FAIL();
    } catch (const UserError &error) {
        EXPECT_EQ(error.message().location.line, line);
    }
}

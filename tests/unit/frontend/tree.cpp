#include "frontend/tree.h"
#include "frontend/tracer.h"
#include "interpret/interpret.h"
#include "transforms/analysis/passes.h"
#include <gtest/gtest.h>

// Trees of tensors.

using namespace scalide;

namespace {

using Layer = std::map<std::string, Tensor>;

/// Two layers of a weight and a bias each, and the program that has them as arguments.
struct Trees {
    Tensor argument(const std::string &name, Dtype dtype) { return tracer.add_argument(name, {dtype, {Extent(2)}}, {}); }
    std::string op_of(const Tensor &tensor) {
        for (const Node &node : tracer.program().nodes)
            if (node.results[0] == tensor.value()) return node.op;
        return "an argument";
    }

    Rulebook rulebook = Rulebook::load({SCALIDE_RULES_DIR});
    Tracer tracer{rulebook, "p"};
    std::vector<Layer> model{{{"w", argument("w0", Dtype::f32)}, {"b", argument("b0", Dtype::f32)}},
                             {{"w", argument("w1", Dtype::f16)}, {"n", argument("n1", Dtype::i32)}}};
};

} // namespace

TEST(frontend, trees_have_leaves) {
    Trees trees;
    std::vector<Layer> &model = trees.model;
    const std::vector<Tensor> leaves = tree::leaves(model);
    ASSERT_EQ(leaves.size(), 4u);
    EXPECT_EQ(leaves[0].value(), model[0]["b"].value());
    EXPECT_EQ(leaves[3].value(), model[1]["w"].value());
    const std::vector<Tensor> reversed(leaves.rbegin(), leaves.rend());
    const std::vector<Layer> back = tree::unflatten(model, reversed);
    EXPECT_EQ(back[0].at("b").value(), model[1]["w"].value());
    EXPECT_EQ(back[1].at("w").value(), model[0]["b"].value());
    try {
        tree::unflatten(model, {leaves[0]});
        FAIL();
    } catch (const UserError &error) {
        EXPECT_STREQ(error.what(), "tree.unflatten: the number of tensors must be the number of leaves, 4, got 1");
    }
}

TEST(frontend, functions_of_trees_take_float_leaves) {
    Trees trees;
    std::vector<Layer> &model = trees.model;
    const std::vector<Layer> halves = tree::astype(model, Dtype::bf16);
    EXPECT_EQ(halves[0].at("b").dtype(), Dtype::bf16);
    EXPECT_EQ(halves[1].at("n").value(), model[1]["n"].value());
    EXPECT_EQ(trees.op_of(tree::set_scaling(model, 2)[0].at("w")), "set_scaling");
    EXPECT_EQ(trees.op_of(tree::stop_scaling(model)[0].at("w")), "stop_scaling");
    EXPECT_EQ(trees.op_of(tree::rebalance(model, 2)[0].at("w")), "rebalance");
    EXPECT_EQ(trees.op_of(tree::dynamic_rescale(model, "l2")[1].at("w")), "dynamic_rescale");
    EXPECT_EQ(trees.op_of(tree::dynamic_rescale_grad(model, "max")[1].at("w")), "dynamic_rescale_grad");
    EXPECT_EQ(trees.op_of(tree::cast_on_forward(model, Dtype::f8_e4m3fn)[1].at("w")), "cast_on_forward");
    EXPECT_EQ(trees.op_of(tree::cast_on_backward(model, Dtype::f8_e5m2)[1].at("w")), "cast_on_backward");
    EXPECT_EQ(trees.op_of(tree::reduce_precision_on_forward(model, 4, 3)[1].at("w")), "reduce_precision_on_forward");
    EXPECT_EQ(trees.op_of(tree::reduce_precision_on_backward(model, 5, 2)[1].at("w")), "reduce_precision_on_backward");
}

TEST(frontend, all_of_a_tree) {
    Trees trees;
    std::vector<Layer> &model = trees.model;
    const auto finite = tree::map([](const Tensor &leaf) { return apply("lt", {leaf, 5}); }, model);
    trees.tracer.program().results.push_back({"y", tree::all(finite).value()});
    const Array small{Dtype::f32, {2}, {1, 2}}, large{Dtype::f32, {2}, {1, 7}}, half{Dtype::f16, {2}, {1, 2}},
        whole{Dtype::i32, {2}, {1, 2}};
    EXPECT_EQ(interpret(trees.tracer.program(), {small, small, half, whole}, trees.rulebook, Mode::real)[0].data, (std::vector<double>{1}));
    EXPECT_EQ(interpret(trees.tracer.program(), {small, large, half, whole}, trees.rulebook, Mode::real)[0].data, (std::vector<double>{0}));
}

TEST(frontend, map_on_backward_changes_the_gradient_alone) {
    Trees trees;
    const Tensor w = trees.model[0]["w"];
    const auto halved = [](const Tensor &ct) { return ct * 0.5; };
    const auto both = [&](const Tensor &ct) { return apply("round", {halved(ct)}); };
    const Tensor y = map_on_backward(both, w);
    const Tensor loss = apply("reduce_sum", {y * y}, {{"axes", to_attribute(std::vector<int64_t>{0})}});
    trees.tracer.program().results = {{"y", y.value()}, {"g", grad(loss, w).value()}};
    const Array x{Dtype::f32, {2}, {1.25, -2.75}}, half{Dtype::f16, {2}, {1, 2}}, whole{Dtype::i32, {2}, {1, 2}};
    const std::vector<Array> got = interpret(trees.tracer.program(), {x, x, half, whole}, trees.rulebook, Mode::real);
    EXPECT_EQ(got[0].data, (std::vector<double>{1.25, -2.75}));
    EXPECT_EQ(got[1].data, (std::vector<double>{1, -3}));
    EXPECT_TRUE(inline_calls(trees.tracer.program(), trees.rulebook).programs.empty());
}

TEST(frontend, map_on_forward_lets_the_gradient_pass) {
    Trees trees;
    std::vector<Layer> &model = trees.model;
    const Tensor w = model[0]["w"];
    const Tensor y = map_on_forward([](const Tensor &x) { return apply("round", {x}); }, w);
    const Tensor loss = apply("reduce_sum", {y * y}, {{"axes", to_attribute(std::vector<int64_t>{0})}});
    trees.tracer.program().results = {{"y", y.value()}, {"g", grad(loss, w).value()}};
    const Array x{Dtype::f32, {2}, {1.25, -2.75}}, half{Dtype::f16, {2}, {1, 2}}, whole{Dtype::i32, {2}, {1, 2}};
    const std::vector<Array> got = interpret(trees.tracer.program(), {x, x, half, whole}, trees.rulebook, Mode::real);
    EXPECT_EQ(got[0].data, (std::vector<double>{1, -3}));
    EXPECT_EQ(got[1].data, (std::vector<double>{2, -6}));
}

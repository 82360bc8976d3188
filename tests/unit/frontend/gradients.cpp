#include "frontend/generator.h"
#include "ir/text.h"
#include "support/programs/rules.h"
#include "words_of.h"
#include <gtest/gtest.h>

// What grad() differentiates: the tensors that the loss was computed from, also after a State was assigned.
using namespace scalide;

namespace {

class TwoStates;
std::function<void(TwoStates &)> body;

class TwoStates : public Generator<TwoStates> {
public:
    Input<Tensor> x{"x", f32, {4}}, ids{"ids", i32, {4}};
    State<Tensor> w{"w", f32, {4}}, v{"v", f32, {4}};
    Output<Tensor> y{"y", f32, {}};
    void generate() override { body(*this); }
};
SCALIDE_REGISTER_GENERATOR(TwoStates, two_states)

Program program_of(const std::function<void(TwoStates &)> &generate) {
    body = generate;
    return run_generator("two_states", {}, rules());
}

Message message_of(const std::function<void(TwoStates &)> &generate) {
    try {
        program_of(generate);
    } catch (const UserError &error) {
        return error.message();
    }
    return {};
}

Tensor total(const Tensor &x, const std::source_location &where = std::source_location::current()) {
    return apply("reduce_sum", {x}, {}, where);
}

/// Returns the operand of the gradient of `total(w * x)`: it is x, broadcast.
std::string result_of(const Program &program, const std::string &name) {
    for (const Result &result : program.results)
        if (result.name == name) return program.value_name(result.value);
    return "no result";
}

} // namespace

TEST(frontend, grad_of_an_assigned_state_means_the_value_that_the_loss_read) {
    const Program after = program_of([](TwoStates &g) {
        g.y = total(g.w * g.x);
        g.w = g.w + 1;
        g.v = grad(g.y, g.w);
    });
    const Program before = program_of([](TwoStates &g) {
        g.y = total(g.w * g.x);
        const Tensor gradient = grad(g.y, g.w);
        g.w = g.w + 1;
        g.v = gradient;
    });
    const auto gradient = [](const Program &program) {
        for (const Node &node : program.nodes)
            for (const ValueId result : node.results)
                if (program.value_name(result) == result_of(program, "v")) return node.op;
        return std::string("none");
    };
    EXPECT_EQ(gradient(after), "mul");
    EXPECT_EQ(gradient(after), gradient(before));
}

TEST(frontend, grad_of_a_state_prefers_its_latest_value_that_the_loss_read) {
    const Program program = program_of([](TwoStates &g) {
        g.w = (g.w + 1).named("second");
        g.y = total(g.w * g.w);
        g.w = (g.w * 3).named("third");
        g.v = grad(g.y, g.w);
    });
    const std::string text = to_string(program);
    EXPECT_NE(text.find("mul(broadcast_in_dim2, second)"), std::string::npos) << text;
}

TEST(frontend, grad_with_respect_to_a_tensor_that_the_loss_does_not_read_names_both_lines) {
    const int line = __LINE__ + 4;
    const Message message = message_of([](TwoStates &g) {
        g.y = total(g.x);
        g.v = g.v + 1;
        g.w = grad(g.y, g.v);
    });
    EXPECT_EQ(message.location.line, line);
    const std::string file = message.location.file;
    EXPECT_EQ(message.requirement, "grad: the loss 'reduce_sum' (from " + file + ":" + std::to_string(line - 2) +
                                       ") does not depend on two_states.v (assigned in " + file + ":" + std::to_string(line - 1) + ")");
    EXPECT_EQ(message.way_out, "Compute the loss from this tensor, leave it out, or write grad(loss, w, allow_unused) for zeros");
    const Message of_list = message_of([](TwoStates &g) {
        g.y = total(g.w);
        grad(g.y, {g.w, g.v});
    });
    EXPECT_NE(of_list.requirement.find("does not depend on two_states.v (from "), std::string::npos) << of_list.requirement;
    const Message of_tensor = message_of([](TwoStates &g) {
        g.y = total(g.w);
        const Tensor h = (g.w * 2).named("h");
        grad(g.y, h);
    });
    EXPECT_NE(of_tensor.requirement.find("does not depend on 'h' (from "), std::string::npos) << of_tensor.requirement;
}

TEST(frontend, grad_with_unused_tensors_allowed_gives_zeros) {
    const Program program = program_of([](TwoStates &g) {
        g.y = total(g.x);
        g.v = grad(g.y, g.v, allow_unused);
        g.w = grad(g.y, {g.x, g.w}, allow_unused)[1];
    });
    EXPECT_NE(to_string(program).find("constant() {dtype: f32, value: 0.0}"), std::string::npos);
}

TEST(frontend, grad_stops_where_the_program_says_so) {
    EXPECT_NO_THROW(program_of([](TwoStates &g) {
        g.y = total(apply("stop_gradient", {g.w}));
        g.w = grad(g.y, g.w);
    }));
}

TEST(frontend, grad_refuses_integers) {
    const Message message = message_of([](TwoStates &g) {
        g.y = total(g.x);
        grad(g.y, g.ids);
    });
    EXPECT_EQ(message.subject, "grad");
    EXPECT_EQ(message.requirement, "must be with respect to floats");
    EXPECT_EQ(message.got, "two_states.ids of type i32[4]");
}

TEST(frontend, an_output_needs_its_own_name) {
    EXPECT_EQ(message_of([](TwoStates &g) { g.y = total(g.x), Output<Tensor>("x", f32, {4}) = g.x; }).requirement,
              "the output two_states.x has the name of an input");
    EXPECT_EQ(message_of([](TwoStates &g) { g.y = total(g.x), Output<Tensor>("w", f32, {4}) = g.x; }).requirement,
              "the output two_states.w has the name of a state");
    const Message message = message_of([](TwoStates &g) { g.y = total(g.x), Output<Tensor>("y", f32, {4}) = g.x; });
    const int line = __LINE__ - 1;
    EXPECT_EQ(message.requirement, "the output two_states.y has the name of another output");
    EXPECT_EQ(message.location.line, line);
}

TEST(frontend, comparisons_are_operators) {
    const Program program = program_of([](TwoStates &g) {
        const Tensor both = apply("and", {g.w < g.v, g.w >= 2});
        g.y = total(apply("select_n", {apply("and", {both, 1 > g.x}), g.w, g.v}));
        EXPECT_EQ((g.w <= g.v).dtype(), Dtype::boolean);
        EXPECT_EQ((0.5 < g.w).dtype(), Dtype::boolean);
    });
    std::vector<std::string> ops;
    for (const Node &node : program.nodes)
        if (node.op == "lt" || node.op == "le" || node.op == "gt" || node.op == "ge") ops.push_back(node.op);
    EXPECT_EQ(ops, (std::vector<std::string>{"lt", "ge", "gt", "le", "lt"}));
}

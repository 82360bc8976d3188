#include "frontend/generator.h"
#include "frontend/reductions.h"
#include "frontend/tree.h"
#include "ir/text.h"
#include "support/programs/rules.h"
#include "words_of.h"
#include <gtest/gtest.h>

// Places of the source, names, arrays of tensors and the list of parameters.
using namespace scalide;

namespace {

/// The function that the next generator `inline_generator` runs as its generate().
std::function<void(GeneratorBase &)> body;

class Inline : public Generator<Inline> {
public:
    Input<Tensor> x{"x", f32, {"n", 3}}, z{"z", f32, {4}};
    void generate() override { body(*this); }
};
SCALIDE_REGISTER_GENERATOR(Inline, inline_generator)

Program program_of(std::function<void(Inline &)> generate) {
    body = [generate](GeneratorBase &generator) { generate(static_cast<Inline &>(generator)); };
    return run_generator("inline_generator", {}, rules());
}

Message message_of(const std::function<void(Inline &)> &generate) {
    try {
        program_of(generate);
    } catch (const UserError &error) {
        return error.message();
    }
    return {};
}

/// A layer that counts its calls. Other generators call it.
class Layer : public Generator<Layer> {
public:
    GeneratorParam<int> width{"width", 3};
    Input<Tensor> x{"x", f32, {"rows", width}};
    State<Tensor> w{"w", f32, {width}}, count{"count", f32, {}};
    Output<Tensor> y{"y", f32, {"rows", width}};
    void generate() override {
        y = x * w;
        count = count + 1;
    }
};

} // namespace

TEST(frontend, errors_name_the_line_of_the_call) {
    struct Case {
        const char *name;
        int line;
        std::function<void(Inline &)> generate;
    };
    // clang-format off
    const Case cases[] = {
        {"an operator of two tensors", __LINE__, [](Inline &g) { g.x + g.z; }},
        {"an operator of a tensor and a number", __LINE__, [](Inline &) { 2 * Tensor(); }},
        {"a negation", __LINE__, [](Inline &) { -Tensor(); }},
        {"apply", __LINE__, [](Inline &g) { apply("qwertz", {g.x}); }},
        {"attributes", __LINE__, [](Inline &g) { apply("cumsum", {g.x}, {{"axis", 7}}); }},
        {"dot", __LINE__, [](Inline &g) { dot(g.x, g.z); }},
        {"einsum", __LINE__, [](Inline &g) { einsum("ij,j->i", {g.x, g.z}); }},
        {"grad", __LINE__, [](Inline &g) { grad(g.x, g.z); }},
        {"map_on_backward", __LINE__, [](Inline &) { map_on_backward([](const Tensor &ct) { return ct; }, Tensor()); }},
        {"shape", __LINE__, [](Inline &) { Tensor().shape(); }},
        {"reduce", __LINE__, [](Inline &g) { reduce(g.z, 0, [](auto a, auto b) { return a + b; }, {{3}}); }},
        {"a function of reduce", __LINE__, [](Inline &g) { reduce(g.z, 0, [&](auto a, auto) { return a + g.x; }); }},
        {"trees", __LINE__, [](Inline &) { tree::cast_on_forward(Tensor(), f16); }},
        {"numerics", __LINE__, [](Inline &g) { g.x.numerics().rescale("most"); }},
        {"an input", __LINE__, [](Inline &) { Input<Tensor>("x", f32, {1}); }},
        {"an assignment", __LINE__, [](Inline &) { State<Tensor>("w", f32, {1}) = Tensor(); }},
        {"a type", __LINE__, [](Inline &g) { Output<Tensor>("y", f16, {4}) = g.z; }},
        {"a name", __LINE__, [](Inline &g) { g.x.named("h"); }},
        {"an index", __LINE__, [](Inline &) { State<Tensor[]>("w", 2, f32, {})[2]; }},
    };
    // clang-format on
    for (const auto &[name, line, generate] : cases) {
        const Location location = message_of(generate).location;
        EXPECT_EQ(location.line, line) << name;
        EXPECT_TRUE(location.file.ends_with("dsl.cpp")) << name << ": " << location.file;
    }
}

TEST(frontend, errors_name_the_scope) {
    const Message message = message_of([](Inline &g) {
        const Scope mlp("mlp"), first("0");
        g.x + g.z;
    });
    EXPECT_EQ(message.way_out, "Extents must be equal or 1, counted from the last axis. Scope: mlp/0");
}

TEST(frontend, nodes_and_arguments_have_places) {
    const Program program = program_of([](Inline &g) { Output<Tensor>("y", f32, {"n"}) = einsum("ij->i", {g.x + 1}); });
    const int line = __LINE__ - 1;
    for (const Node &node : program.nodes) {
        EXPECT_EQ(node.location.line, line) << node.op;
        EXPECT_TRUE(node.location.file.ends_with("dsl.cpp")) << node.location.file;
    }
    for (const Argument &argument : program.arguments) EXPECT_GT(argument.location.line, 0);
}

TEST(frontend, tensors_have_names) {
    const Program program = program_of([](Inline &g) {
        const Tensor h = (g.x * g.x).named("hidden");
        Output<Tensor>("y", f32, {"n", 3}) = (h + h).named("hidden");
    });
    EXPECT_EQ(to_string(program), "program inline_generator(x: f32[n, 3], z: f32[4]) -> (y: f32[n, 3] = hidden1) {\n"
                                  "  hidden = mul(x, x) : f32[n, 3]\n"
                                  "  hidden1 = add(hidden, hidden) : f32[n, 3]\n}\n");
    EXPECT_EQ(message_of([](Inline &g) { (g.x * 2).named(""); }).requirement, "the name of a tensor must not be empty");
    const Message message = message_of([](Inline &g) { g.x.named("h"); });
    EXPECT_EQ(message.requirement, "cannot name the argument inline_generator.x 'h'");
    EXPECT_EQ(message.way_out, "Change its name where it is declared");
}

TEST(frontend, arrays_of_tensors) {
    const Program program = program_of([](Inline &) {
        Input<Tensor[]> b("b", 2, f32, {3});
        State<Tensor[]> w("w", 2, f32, {3});
        Output<Tensor[]> y("y", 1, f32, {3});
        const std::vector<Tensor> all = w;
        EXPECT_EQ(all.size(), w.size());
        y[0] = all[0] + b[1];
        for (State<Tensor> &state : w) state = state + b[0];
    });
    EXPECT_EQ(to_string(program), "program inline_generator\n    (x: f32[n, 3], z: f32[4], b.0: f32[3], b.1: f32[3], w.0: f32[3] inout, "
                                  "w.1: f32[3] inout)\n    -> (y.0: f32[3] = add, w.0 = add1, w.1 = add2) {\n"
                                  "  add = add(w.0, b.1) : f32[3]\n"
                                  "  add1 = add(w.0, b.0) : f32[3]\n"
                                  "  add2 = add(w.1, b.0) : f32[3]\n}\n");
    EXPECT_EQ(message_of([](Inline &) { State<Tensor[]>("w", -1, f32, {}); }).requirement, "the number of tensors must not be negative");
    EXPECT_EQ(message_of([](Inline &) { State<Tensor[]>("w", 1, f32, {})[-1]; }).requirement,
              "the index must be less than the number of tensors, 1");
}

TEST(frontend, a_constant_is_an_argument_that_is_read) {
    const Program program = program_of([](Inline &g) {
        Constant<Tensor> w{"w", f32, {4}};
        Output<Tensor>("y", f32, {4}) = g.z + w;
    });
    EXPECT_EQ(to_string(program), "program inline_generator(x: f32[n, 3], z: f32[4], w: f32[4] constant) -> (y: f32[4] = add) {\n"
                                  "  add = add(z, w) : f32[4]\n}\n");
}

TEST(frontend, states_can_be_moved) {
    class Layers : public Generator<Layers> {
    public:
        std::vector<State<Tensor>> w;
        void generate() override {
            for (int i = 0; i < 5; i++) w.push_back({"w." + std::to_string(i), f32, {i + 1}});
            for (State<Tensor> *state : states()) *state = *state + 1;
        }
    };
    register_generator("layers", [] { return std::make_unique<Layers>(); });
    const Program program = run_generator("layers", {}, rules());
    ASSERT_EQ(program.results.size(), 5u);
    for (size_t i = 0; i < 5; i++) {
        EXPECT_EQ(program.results[i].name, "w." + std::to_string(i));
        EXPECT_EQ(program.value_name(program.results[i].value).substr(0, 3), "add");
    }
}

TEST(frontend, several_results_have_names) {
    const Program program = program_of([](Inline &g) {
        const auto [values, indices] = apply_n<2>("top_k", {g.z}, {{"k", 2}});
        Output<Tensor>("y", f32, {2}) = values;
        Output<Tensor>("i", i32, {2}) = indices;
    });
    EXPECT_EQ(program.nodes.at(0).op, "top_k");
    EXPECT_EQ(program.results.at(1).value, program.nodes[0].results.at(1));
}

TEST(frontend, a_generator_calls_a_generator) {
    const Program program = program_of([](Inline &g) {
        const Tensor h = call<Layer>("a", {g.x});
        const Tensor sum = call<Layer>("b", {h + 1}).output("y") + h;
        Output<Tensor>("y", f32, {"n", 3}) = sum;
        Output<Tensor>("c", f32, {2, 4}) = call<Layer>(
            "c",
            {apply("broadcast_in_dim", {g.z}, {{"shape", to_attribute(Extents{2, 4})}, {"dims", to_attribute(std::vector<int64_t>{1})}})},
            {{"width", "4"}});
    });
    std::string states;
    for (const Result &result : program.results)
        if (result.argument >= 0) states += result.name + " = " + program.value_name(result.value) + ", ";
    EXPECT_EQ(states, "a.w = a.w, a.count = add, b.w = b.w, b.count = add2, c.w = c.w, c.count = add4, ");
    for (const Node &node : program.nodes)
        if (node.op == "mul") EXPECT_EQ(to_string(program.type(node.results[0])), node.scope == "c" ? "f32[2, 4]" : "f32[n, 3]");
}

TEST(frontend, wrong_calls_of_a_generator) {
    const std::pair<std::function<void(Inline &)>, const char *> cases[] = {
        {[](Inline &) { call<Layer>("a", {}); }, "a: the number of inputs must be 1, got 0"},
        {[](Inline &g) { call<Layer>("a", {g.z}); }, "call.operands: must match the arguments of a"},
        {[](Inline &g) {
             call<Layer>("a", {g.x}, {{"widht", "3"}});
         },
         "generator 'a' has no parameter 'widht'. Did you mean 'width'?"},
        {[](Inline &g) { call<Layer>("a", {g.x}), call<Layer>("a", {g.x}); }, "two calls of generators have the name 'a'"},
        {[](Inline &g) { call<Layer>("a", {g.x}).output("z"); }, "unknown output of 'a' 'z'"},
    };
    for (const auto &[generate, words] : cases) {
        const Message message = message_of(generate);
        EXPECT_TRUE(words_of(UserError(message)).starts_with(words)) << words_of(UserError(message));
        EXPECT_TRUE(message.location.file.ends_with("dsl.cpp")) << message.location.file;
    }
}

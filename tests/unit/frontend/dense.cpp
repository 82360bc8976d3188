#include "frontend/dense.h"
#include "frontend/tracer.h"
#include "interpret/interpret.h"
#include "ir/text.h"
#include "support/programs/rules.h"
#include "words_of.h"
#include <cmath>
#include <gtest/gtest.h>

// Dense layers, first values of states, and statistics.
using namespace scalide;

namespace {

using Numbers = std::vector<int64_t>;

int64_t count_of(const Numbers &shape) {
    int64_t count = 1;
    for (const int64_t extent : shape) count *= extent;
    return count;
}

/// Small integers, so that any order of sums gives the same.
Array integers(const Numbers &shape, int start) {
    Array array{Dtype::f32, shape, {}};
    for (int64_t i = 0; i < count_of(shape); i++) array.data.push_back(static_cast<double>((start + 5 * i) % 7 - 3));
    return array;
}

/// What the next generator `dense_layer` declares and computes.
struct LayerCase {
    Numbers shape;
    Numbers features;
    DenseOptions options;
};
LayerCase layer;

Features features_of(const Numbers &extents) {
    Features features({});
    features.extents.assign(extents.begin(), extents.end());
    return features;
}

Dimensions dimensions_of(const Numbers &shape) {
    Dimensions dimensions;
    for (const int64_t extent : shape) dimensions.emplace_back(Extent(extent));
    return dimensions;
}

class DenseLayer : public Generator<DenseLayer> {
public:
    Input<Tensor> x{"x", f32, dimensions_of(layer.shape)};
    Dense dense{"layer", features_of(layer.features), layer.options};
    void generate() override {
        const Tensor h = dense(x);
        Output<Tensor> y("y", f32, {h.shape().begin(), h.shape().end()});
        y = h;
    }
};
SCALIDE_REGISTER_GENERATOR(DenseLayer, dense_layer)
SCALIDE_REGISTER_INITIAL_STATE(DenseLayer, dense_layer_state)

/// The definition: for each position on the batch axes, a matrix product with the kernel of this position, and its bias.
std::vector<double> naive_dense(const LayerCase &c, const Array &x, const Array &kernel, const Array &bias) {
    const auto rank = static_cast<int64_t>(c.shape.size()), kept = rank - c.options.axes;
    const int64_t batch = count_of({c.shape.begin(), c.shape.begin() + c.options.batch_axes}),
                  lines = count_of({c.shape.begin() + c.options.batch_axes, c.shape.begin() + kept}),
                  rows = count_of({c.shape.begin() + kept, c.shape.end()}), columns = count_of(c.features);
    std::vector<double> y;
    for (int64_t b = 0; b < batch; b++)
        for (int64_t line = 0; line < lines; line++)
            for (int64_t column = 0; column < columns; column++) {
                double sum = c.options.bias ? bias.data[b * columns + column] : 0;
                for (int64_t row = 0; row < rows; row++)
                    sum += x.data[(b * lines + line) * rows + row] * kernel.data[(b * rows + row) * columns + column];
                y.push_back(c.options.activation.empty() ? sum : std::max(sum, 0.0));
            }
    return y;
}

std::string error_of(const std::string &generator) {
    return words_of_error([&] { run_generator(generator, {}, rules()); });
}

/// Two microbatches of one layer, with a statistic of its inputs and an optimizer that updates all states.
class Microbatches : public Generator<Microbatches> {
public:
    Input<Tensor[]> x{"x", 2, f32, {3, 4}};
    Dense dense{"layer", 2, {.bias = false}};
    Statistic<Tensor> history{"history", f32, {3}};
    Output<Tensor> loss{"loss", f32, {}};
    void generate() override {
        Tensor sum;
        for (Tensor part : x) {
            const Tensor h = dense(part), squares = apply("mean", {h * h});
            sum = sum.is_assigned() ? sum + squares : squares;
            const Tensor amax = apply("reshape", {apply("reduce_max", {apply("abs", {part})})}, {{"shape", to_attribute(Extents{1})}});
            const Tensor older = apply("slice", {history}, {{"start", to_attribute(Numbers{0})}, {"limit", to_attribute(Numbers{2})}});
            history = apply("concatenate", {amax, older}, {{"dimension", 0}});
        }
        loss = sum;
        std::vector<Tensor> parameters;
        for (State<Tensor> *state : states()) parameters.push_back(*state);
        const std::vector<Tensor> gradients = grad(loss, parameters);
        for (size_t i = 0; i < gradients.size(); i++) *states()[i] = parameters[i] - 0.5 * gradients[i];
    }
};
SCALIDE_REGISTER_GENERATOR(Microbatches, microbatches)

/// Another generator calls this one, so that its statistic and its first values become those of the caller.
class Observer : public Generator<Observer> {
public:
    Input<Tensor> x{"x", f32, {4}};
    State<Tensor> w{"w", f32, {4}, initializers::constant(2)};
    Statistic<Tensor> largest{"largest", f32, {}, initializers::ones()};
    Output<Tensor> y{"y", f32, {4}};
    void generate() override {
        y = x * w;
        largest = apply("reduce_max", {x});
    }
};

class CallsObserver : public Generator<CallsObserver> {
public:
    Input<Tensor> x{"x", f32, {4}};
    Output<Tensor> y{"y", f32, {4}};
    void generate() override {
        y = call<Observer>("first", {x});
        EXPECT_EQ(states().size(), 1U);
    }
};
SCALIDE_REGISTER_GENERATOR(CallsObserver, calls_observer)
SCALIDE_REGISTER_INITIAL_STATE(CallsObserver, calls_observer_state)

/// Delayed scaling written by hand, as Flax's in_qdq: rounding with a straight-through gradient, and statistics of values and gradients.
class ByHand : public Generator<ByHand> {
public:
    Input<Tensor> x{"x", f32, {4}};
    State<Tensor> w{"w", f32, {4}};
    Statistic<Tensor> scale{"scale", f32, {}, initializers::ones()}, history{"history", f32, {2}}, ct_history{"ct_history", f32, {2}};
    void generate() override {
        const auto rounded = [&](const Tensor &value) {
            return apply("convert_element_type", {apply("convert_element_type", {value / scale}, {{"dtype", "f8_e4m3fn"}})},
                         {{"dtype", "f32"}}) *
                   scale;
        };
        const Tensor h = map_on_forward(rounded, w) * x, loss = apply("reduce_sum", {h * h});
        const std::vector<Tensor> gradients = grad(loss, {w, h});
        const Tensor next = apply("update_amax_history", {history, w});
        scale = apply("delayed_scale", {scale, next}, {{"dtype", "f8_e4m3fn"}});
        history = next;
        ct_history = apply("update_amax_history", {ct_history, gradients[1]});
        w = w - gradients[0];
    }
};
SCALIDE_REGISTER_GENERATOR(ByHand, by_hand)

class Matrices : public Generator<Matrices> {
public:
    State<Tensor> plain{"plain", f32, {3}};
    State<Tensor[]> w{"w", 2, f32, {40, 50}, initializers::he_uniform()};
    State<Tensor> normal{"normal", f16, {3000}, initializers::normal(0.5)};
    State<Tensor> uniform{"uniform", f32, {3000}, initializers::uniform(3)};
    State<Tensor> kernel{"kernel", f32, {2, 3, 20, 60}, initializers::glorot_normal(1)};
    State<Tensor> counted{"counted", f32, {3}, [](const Tensor &, const Type &) {
                              return apply("iota", {}, {{"dtype", "f32"}, {"shape", to_attribute(Extents{3})}, {"dimension", 0}});
                          }};
    void generate() override {}
};
SCALIDE_REGISTER_INITIAL_STATE(Matrices, matrices_state)

/// First values that JAX gives for the same keys.
class LikeJax : public Generator<LikeJax> {
public:
    State<Tensor> a{"a", f32, {3, 2}, initializers::lecun_normal()}, b{"b", f32, {3, 2}, initializers::he_uniform()};
    State<Tensor> c{"c", f32, {2, 2, 3}, initializers::glorot_normal(1)}, d{"d", f32, {3}, initializers::uniform(3)};
    State<Tensor> e{"e", f32, {3}, initializers::truncated_normal(0.5)};
    void generate() override {}
};
SCALIDE_REGISTER_INITIAL_STATE(LikeJax, like_jax_state)

/// Programs with one mistake each. The body is that of the next program.
std::function<void()> mistake;
class Mistaken : public Generator<Mistaken> {
public:
    Input<Tensor> x{"x", f32, {"n", 3}};
    void generate() override { mistake(); }
};
SCALIDE_REGISTER_GENERATOR(Mistaken, mistaken)
SCALIDE_REGISTER_INITIAL_STATE(Mistaken, mistaken_state)

std::string error_of_state(const Dimensions &shape, const Initializer &initial) {
    mistake = [&] { add_state("w", f32, shape, initial); };
    return error_of("mistaken_state");
}

} // namespace

TEST(frontend, dense_is_a_matrix_product) {
    const std::pair<LayerCase, Numbers> cases[] = {
        {{{4, 3}, {5}, {}}, {4, 5}},
        {{{3}, {5}, {}}, {5}},
        {{{2, 4, 3}, {5}, {.bias = false}}, {2, 4, 5}},
        {{{4, 8, 8, 16}, {16, 4}, {.axes = 2}}, {4, 8, 16, 4}},
        {{{4, 8, 3}, {2, 1, 3}, {.axes = 3}}, {2, 1, 3}},
        {{{4, 3}, {}, {}}, {4}},
        {{{2, 4, 3}, {5}, {.batch_axes = 1, .activation = "relu"}}, {2, 4, 5}},
        {{{2, 3, 4, 3, 2}, {5, 2}, {.axes = 2, .batch_axes = 2}}, {2, 3, 4, 5, 2}},
        {{{2, 3}, {5}, {.batch_axes = 1}}, {2, 5}},
    };
    for (const auto &[c, shape] : cases) {
        layer = c;
        const Program program = run_generator("dense_layer", {}, rules());
        SCOPED_TRACE(to_string(program));
        std::vector<Array> inputs;
        for (const Argument &argument : program.arguments) {
            Numbers extents;
            for (const Extent &extent : program.type(argument.value).shape) extents.push_back(extent.value());
            inputs.push_back(integers(extents, static_cast<int>(inputs.size())));
        }
        ASSERT_EQ(inputs.size(), c.options.bias ? 3U : 2U);
        EXPECT_EQ(program.value_name(program.arguments[1].value), "layer.kernel");
        const Array y = interpret(program, inputs, rules(), Mode::real)[0];
        EXPECT_EQ(y.shape, shape);
        EXPECT_EQ(y.data, naive_dense(c, inputs[0], inputs[1], inputs.back()));
    }
}

TEST(frontend, dense_of_one_axis_needs_no_reshape) {
    layer = {{4, 3}, {5}, {.dtype = Dtype::bf16}};
    EXPECT_EQ(to_string(run_generator("dense_layer", {}, rules())),
              "program dense_layer\n    (x: f32[4, 3], layer.kernel: bf16[3, 5] inout, layer.bias: bf16[5] inout)\n"
              "    -> (y: f32[4, 5] = add, layer.kernel = layer.kernel, layer.bias = layer.bias) {\n"
              "  scope \"layer\" {\n"
              "    convert_element_type = convert_element_type(layer.kernel) {dtype: f32} : f32[3, 5]\n"
              "    dot_general = dot_general(x, convert_element_type) {batch: [[], []], contract: [[1], [0]], preferred: f32} : f32[4, 5]\n"
              "    convert_element_type1 = convert_element_type(layer.bias) {dtype: f32} : f32[5]\n"
              "    broadcast_in_dim = broadcast_in_dim(convert_element_type1) {dims: [1], shape: [4, 5]} : f32[4, 5]\n"
              "    add = add(dot_general, broadcast_in_dim) : f32[4, 5]\n"
              "  }\n"
              "}\n");
}

/// Each microbatch reads the history before the run, and the histories are merged by max. The optimizer updates the kernel alone.
TEST(frontend, statistics_of_microbatches_are_merged) {
    const Program program = run_generator("microbatches", {}, rules());
    const Array first = integers({3, 4}, 0), kernel = integers({4, 2}, 2), history{Dtype::f32, {3}, {4, 1, 7}};
    Array second = integers({3, 4}, 1);
    second.data[5] = -9;
    // Members are declared in their order; the first call of the layer declares its kernel.
    std::vector<std::string> names;
    for (const Argument &argument : program.arguments) names.push_back(program.value_name(argument.value));
    EXPECT_EQ(names, (std::vector<std::string>{"x.0", "x.1", "history", "layer.kernel"}));
    const std::vector<Array> got = interpret(program, {first, second, history, kernel}, rules(), Mode::real);
    EXPECT_EQ(got[1].data, (std::vector<double>{9, 4, 1}));
    for (size_t i = 0; i < kernel.data.size(); i++) {
        const auto row = static_cast<int64_t>(i) / 2, column = static_cast<int64_t>(i) % 2;
        double gradient = 0;
        for (const Array &x : {first, second})
            for (int64_t line = 0; line < 3; line++) {
                double h = 0;
                for (int64_t k = 0; k < 4; k++) h += x.data[line * 4 + k] * kernel.data[k * 2 + column];
                gradient += 2 * h * x.data[line * 4 + row] / 6;
            }
        EXPECT_NEAR(got[2].data[i], kernel.data[i] - 0.5 * gradient, 1e-4);
    }
}

TEST(frontend, statistics_of_called_generators) {
    const Program program = run_generator("calls_observer", {}, rules());
    const Array x{Dtype::f32, {4}, {1, -5, 3, 2}}, w{Dtype::f32, {4}, {1, 1, 1, 1}}, largest{Dtype::f32, {}, {8}};
    const std::vector<Array> got = interpret(program, {x, w, largest}, rules(), Mode::real);
    EXPECT_EQ(program.results[2].name, "first.largest");
    EXPECT_EQ(got[2].data, (std::vector<double>{3}));
    const Program state = run_generator("calls_observer_state", {}, rules());
    const std::vector<Array> initial = interpret(state, {{Dtype::u32, {2}, {0, 42}}}, rules(), Mode::real);
    EXPECT_EQ(state.results[0].name, "first.w");
    EXPECT_EQ(initial[0].data, (std::vector<double>(4, 2)));
    EXPECT_EQ(initial[1].data, (std::vector<double>{1}));
}

TEST(frontend, statistics_of_values_and_gradients) {
    const Array x{Dtype::f32, {4}, {1, 2, 0.5, -1}}, w{Dtype::f32, {4}, {2, -3, 1, 1.0625}};
    const auto scalar = [](double value) { return Array{Dtype::f32, {}, {value}}; };
    const Array histories{Dtype::f32, {2}, {7, 5}};
    const std::vector<Array> got =
        interpret(run_generator("by_hand", {}, rules()), {x, w, scalar(2), histories, histories}, rules(), Mode::stored);
    // 1.0625 / 2 rounds to 0.5, so h is w * x except for its last element, -1. The gradient with respect to w is 2 * h * x.
    EXPECT_EQ(got[0].data, (std::vector<double>{2 - 4, -3 + 24, 1 - 0.5, 1.0625 - 2}));
    EXPECT_FLOAT_EQ(static_cast<float>(got[1].data[0]), 7 / 448.0F);
    EXPECT_EQ(got[2].data, (std::vector<double>{3, 7})) << "element 0 is new, the last element was element 0";
    EXPECT_EQ(got[3].data, (std::vector<double>{12, 7}));
}

TEST(frontend, first_values_have_the_variance_of_their_initializer) {
    const Program program = run_generator("matrices_state", {}, rules());
    const std::vector<Array> got = interpret(program, {{Dtype::u32, {2}, {0, 42}}}, rules(), Mode::real);
    struct Expected {
        const char *name;
        double mean, deviation, largest;
    };
    const double he = std::sqrt(2.0 / 40), glorot = std::sqrt(1.0 / (3 * 40));
    const Expected expected[] = {
        {"w.0", 0, he, he * std::sqrt(3.0)},      {"w.1", 0, he, he * std::sqrt(3.0)},        {"normal", 0, 0.5, 3},
        {"uniform", 1.5, 3 / std::sqrt(12.0), 3}, {"kernel", 0, glorot, 2 * glorot / 0.8796}, {"counted", 1, std::sqrt(2.0 / 3), 2}};
    ASSERT_EQ(got.size(), std::size(expected));
    for (size_t i = 0; i < got.size(); i++) {
        SCOPED_TRACE(expected[i].name);
        EXPECT_EQ(program.results[i].name, expected[i].name);
        double sum = 0, squares = 0, largest = 0;
        for (const double value : got[i].data) {
            sum += value;
            squares += value * value;
            largest = std::max(largest, std::abs(value));
        }
        const auto count = static_cast<double>(got[i].data.size());
        EXPECT_NEAR(sum / count, expected[i].mean, 0.1 * expected[i].deviation);
        EXPECT_NEAR(std::sqrt(squares / count - sum * sum / count / count), expected[i].deviation, 0.05 * expected[i].deviation);
        EXPECT_LE(largest, expected[i].largest);
    }
    EXPECT_NE(got[0].data, got[1].data);
}

/// jax.nn.initializers of JAX 0.10.2, for the keys fold_in(key(42), i).
TEST(frontend, first_values_are_those_of_jax) {
    const std::vector<std::vector<double>> expected{
        {0.04756281152367592, -0.30357927083969116, 0.7820156812667847, 0.32417041063308716, 0.18794602155685425, 0.19414955377578735},
        {0.6439316868782043, 0.8142123818397522, -0.9003045558929443, -0.6713830828666687, -1.1010236740112305, -0.8410872220993042},
        {0.2958395183086395, 0.40084952116012573, -0.7646684050559998, -0.25599077343940735, -0.1365608125925064, -1.100651502609253,
         -1.1515092849731445, -0.315811425447464, -0.021930184215307236, -1.1252862215042114, 0.9311745762825012, 0.10877557843923569},
        {1.1670362949371338, 0.25720810890197754, 0.15306150913238525},
        {0.3104228079319, 0.08274286240339279, 0.7202553153038025}};
    const Program program = run_generator("like_jax_state", {}, rules());
    const std::vector<Array> got = interpret(program, {{Dtype::u32, {2}, {0, 42}}}, rules(), Mode::real);
    for (size_t i = 0; i < expected.size(); i++) {
        ASSERT_EQ(got[i].data.size(), expected[i].size());
        for (size_t j = 0; j < expected[i].size(); j++) EXPECT_NEAR(got[i].data[j], expected[i][j], 2e-6) << program.results[i].name;
    }
}

TEST(frontend, dense_errors) {
    const std::pair<LayerCase, const char *> cases[] = {
        {{{4, 3}, {5}, {.axes = 0}}, "layer: axes must be at least 1, got 0"},
        {{{4, 3}, {5}, {.batch_axes = -1}}, "layer: batch_axes must not be negative, got -1"},
        {{{4, 3}, {5}, {.axes = 2, .batch_axes = 1}},
         "layer: x must have 1 batch axes and 2 contracted axes, got [4, 3]. Reduce axes or batch_axes"},
        {{{4, 3}, {5, 0}, {}}, "layer: features must be positive, got [5, 0]"},
        {{{4, 3}, {5}, {.activation = "reluu"}},
         "unknown operator 'reluu'. Did you mean 'relu'? Otherwise add a rule file, see docs/reference/rules.md"},
    };
    for (const auto &[c, error] : cases) {
        layer = c;
        EXPECT_EQ(error_of("dense_layer"), error);
    }
    mistake = [] {
        Dense dense("layer", 2, {.bias = false});
        dense(add_state("a", f32, {4, 3}));
        dense(add_state("b", f32, {4, 5}));
    };
    EXPECT_EQ(error_of("mistaken"), "layer: x must fit the kernel f32[3, 2], got f32[5, 2]. Declare another layer");
    mistake = [] { Dense("layer", 2).kernel(); };
    EXPECT_EQ(error_of("mistaken"), "state 'layer.kernel' is not declared. Call the layer first, with this state");
    mistake = [] {
        for (int i = 0; i < 2; i++) Dense("layer", 2)(add_state("a" + std::to_string(i), f32, {4, 3}));
    };
    EXPECT_EQ(error_of("mistaken"), "two arguments have the name mistaken.layer.kernel. Rename one of them");
}

TEST(frontend, statistic_errors) {
    mistake = [] { Statistic<Tensor>("s", f32, {}, initializers::zeros(), ""); };
    EXPECT_EQ(error_of("mistaken"), "s: merge must be an operator of two operands, got ''. Write \"max\"");
    mistake = [] {
        Statistic<Tensor> s("s", f32, {}, initializers::zeros(), "maxx");
        s = s;
        s = s;
    };
    EXPECT_EQ(error_of("mistaken"), "unknown operator 'maxx'. Did you mean 'max'? Otherwise add a rule file, see docs/reference/rules.md");
}

TEST(frontend, initializer_errors) {
    EXPECT_EQ(error_of_state({3}, {}), "generator 'mistaken_state' has no state with an initializer. Pass one to a State, such as "
                                       "initializers::zeros()");
    EXPECT_EQ(
        error_of_state({3}, initializers::lecun_normal()),
        "variance_scaling: the state must have two axes besides the batch axes, got f32[3] with 0 batch axes. Use normal() or uniform()");
    EXPECT_EQ(error_of_state({3, 4}, initializers::lecun_normal(1)), "variance_scaling: the state must have two axes besides the batch "
                                                                     "axes, got f32[3, 4] with 1 batch axes. Use normal() or uniform()");
    EXPECT_EQ(error_of_state({"n", 4}, initializers::lecun_normal()),
              "variance_scaling: the extents must be numbers, got f32[n, 4]. Use a GeneratorParam as the extent");
    EXPECT_EQ(error_of_state({3}, [](const Tensor &key, const Type &) { return key; }),
              "mistaken_state.w: the initializer must return f32[3], got u32[2]");
    mistake = [] { initializers::variance_scaling(1, "fan_inn", "normal"); };
    EXPECT_EQ(error_of("mistaken"), "unknown mode 'fan_inn'. Did you mean 'fan_in'?");
    mistake = [] { initializers::variance_scaling(1, "fan_in", "norml"); };
    EXPECT_EQ(error_of("mistaken"), "unknown distribution 'norml'. Did you mean 'normal'?");
}

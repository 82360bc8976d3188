// Programs for dsl_test.py: what the functions of generated operators take and return.
#include <scalide/generator.h>
#include <scalide/loops.h>

using namespace scalide;

class Layers : public Generator<Layers> {
public:
    GeneratorParam<int> depth{"depth", 2};
    GeneratorParam<bool> causal{"causal", true};
    GeneratorParam<float> rate{"rate", 0.5f};
    Input<Tensor> x{"x", f32, {"b", 6, 2, 4}};
    State<Tensor[]> w{"w", depth, f32, {4, 4}, initializers::lecun_normal()};
    Output<Tensor> loss{"loss", f32, {}}, largest{"largest", f32, {2}};
    Output<Tensor> place{"place", i32, {2}};

    void generate() override {
        Tensor h = x;
        for (int i = 0; i < depth; i++) {
            const Scope scope("layer" + std::to_string(i));
            h = dot(h, broadcast_in_dim(w[i], {h.shape()[0], 6, 4, 4}, {2, 3})).named("hidden");
        }
        h = attention(h, h, h, causal.value());
        loss = mean(cumsum(h, 1, true));
        const auto [values, indices] = top_k(mean(w[0], {0}), 2);
        largest = values;
        place = indices;
        const std::vector<Tensor> gradients = grad(loss, w);
        for (int i = 0; i < depth; i++) w[i] = w[i] - rate * gradients[i];
    }
};
SCALIDE_REGISTER_GENERATOR(Layers, layers)
SCALIDE_REGISTER_INITIAL_STATE(Layers, layers_state)

/// Padding is a word or pairs, and indices have 64 bits.
class PaddedLayers : public Generator<PaddedLayers> {
public:
    Input<Tensor> x{"x", f32, {"b", 3, 8, 8}}, w{"w", f32, {4, 3, 3, 3}}, table{"table", f32, {10, 4}};
    Input<Tensor> ids{"ids", i64, {"b"}};
    Output<Tensor> same{"same", f32, {"b", 4, 8, 8}}, padded{"padded", f32, {"b", 4, 5, 9}}, pooled{"pooled", f32, {"b", 3, 8, 9}};
    Output<Tensor> rows{"rows", f32, {"b", 4}}, place{"place", i64, {"b"}};

    void generate() override {
        same = conv(x, w, {}, "same");
        padded = conv(x, w, {{2, 1}}, {{1, 2}, {0, 3}});
        pooled = max_pool(x, {1, 1, 3, 3}, {}, {{0, 0}, {0, 0}, {1, 1}, {1, 2}});
        rows = take(table, ids, 0);
        place = convert_element_type(argmax(rows, 1), i64);
    }
};
SCALIDE_REGISTER_GENERATOR(PaddedLayers, padded_layers)

/// Newton's steps for the roots of all elements, until each square is near enough, and then 30 steps without a test, which become nodes.
class Roots : public Generator<Roots> {
public:
    GeneratorParam<int> most{"most", 100};
    Input<Tensor> a{"a", f32, {"n"}};
    Output<Tensor> x{"x", f32, {"n"}}, more{"more", f32, {"n"}};
    Output<Tensor> steps{"steps", i32, {}};

    void generate() override {
        const auto better = [&](const Tensor &x) { return 0.5 * (x + a / x); };
        const auto far = [&](const std::array<Tensor, 2> &c) { return reduce_max(abs(c[1] - a / c[1]), {0}) > 0.001; };
        const auto step = [&](const std::array<Tensor, 2> &c) { return std::array{c[0] + 1, better(c[1])}; };
        const std::array<Tensor, 2> last =
            while_loop(far, step, std::array<Tensor, 2>{convert_element_type(0 * reduce_max(a, {0}), i32), a}, {.max_steps = most.value()});
        steps = last[0];
        x = last[1];
        more = fori_loop(0, 30, [&](const Tensor &, const Tensor &c) { return better(c); }, last[1], {.unroll = true});
    }
};
SCALIDE_REGISTER_GENERATOR(Roots, roots)

class Wrong : public Generator<Wrong> {
public:
    Input<Tensor> x{"x", f32, {"b", 4}}, y{"y", f32, {8}};
    Output<Tensor> z{"z", f32, {"b", 4}};

    void generate() override {
        const Scope scope("head");
        z = x + relu(y); // the sum is wrong
    }
};
SCALIDE_REGISTER_GENERATOR(Wrong, wrong)

static_assert(!std::is_convertible_v<const char *, Flag>, "a text is no flag");

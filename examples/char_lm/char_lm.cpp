// A causal transformer over bytes: its training step with AdamW, a one-cycle schedule and clipping, its evaluation, and one step of
// generation with a KV cache. Nothing here says in which formats.
#include <optional>
#include <scalide/generator.h>
#include <scalide/optimizers.h>

using namespace scalide;

namespace {

constexpr int bytes = 256;

// The extents and parameters of all programs. The states have the same names in each, so generation reads what the training updates.
struct Model {
    GeneratorParam<int> layers{"layers", 6}, length{"length", 128}, width{"width", 128}, heads{"heads", 4};

    int size() const { return width.value() / heads.value(); }

    Tensor embedded(const Tensor &ids, const Tensor &positions) {
        const State<Tensor> &tokens = add_state("tokens", f32, {bytes, width}, initializers::normal(0.02));
        const State<Tensor> &places = add_state("positions", f32, {length, width}, initializers::normal(0.02));
        return take(tokens, ids, 0, "clip") + take(places, positions, 0, "clip");
    }

    // `attend` computes the attention of a layer from query, key and value [batch, length, heads, size].
    template<typename Attend>
    Tensor block(const std::string &name, const Tensor &x, const Attend &attend) {
        const Tensor h = norm(name + ".norm1", x);
        const Features per_head{heads, size()};
        const Tensor query = Dense(name + ".query", per_head)(h), key = Dense(name + ".key", per_head)(h),
                     value = Dense(name + ".value", per_head)(h);
        const Tensor mixed = x + dropped(name + ".out", Dense(name + ".out", width, {.axes = 2})(attend(query, key, value)));
        const Tensor hidden = Dense(name + ".up", 4 * width, {.activation = "gelu_tanh"})(norm(name + ".norm2", mixed));
        return mixed + dropped(name + ".down", Dense(name + ".down", width)(hidden));
    }

    Tensor logits(const Tensor &x) { return Dense("head", bytes, {.bias = false})(norm("norm", x)); }

    Tensor norm(const std::string &name, const Tensor &x) {
        const State<Tensor> &gain = add_state(name + ".gain", f32, {width}, initializers::ones());
        const State<Tensor> &bias = add_state(name + ".bias", f32, {width}, initializers::zeros());
        return layer_norm(x, gain, bias);
    }

    // Zeros a part of the elements in training. Each call has a stream of its own, so no two layers drop the same elements.
    Tensor dropped(const std::string &, const Tensor &x) { return drop > 0 && key.is_assigned() ? dropout(x, key, drop, stream++) : x; }

    double drop = 0;
    Tensor key;
    int64_t stream = 1;
};

// The mean cross-entropy in nats of the byte after each byte, for ids [batch, length + 1].
Tensor mean_loss(Model &model, const Tensor &ids) {
    const int length = model.length;
    const Extent batch = ids.shape()[0];
    const Tensor given = slice(ids, {0, 0}, {batch, length}), wanted = slice(ids, {0, 1}, {batch, length + 1});
    Tensor x = model.embedded(given, iota({length}, 0, i32));
    for (int i = 0; i < model.layers; i++)
        x = model.block("layer" + std::to_string(i), x,
                        [](const Tensor &q, const Tensor &k, const Tensor &v) { return attention(q, k, v, true); });
    return mean(softmax_cross_entropy(reshape(model.logits(x), {batch * length, bytes}), reshape(wanted, {batch * length})));
}

} // namespace

class CharLm : public Generator<CharLm> {
public:
    GeneratorParam<int> batch{"batch", 8}, steps{"steps", 2000};
    GeneratorParam<bool> training{"training", true}, ranks{"ranks", false}; // ranks: the step is for one rank of several
    GeneratorParam<double> rate{"rate", 2e-3}, drop{"drop", 0.0};
    Model model;
    Input<Tensor> ids{"ids", i32, {ranks ? Dimension("b") : Dimension(batch), model.length.value() + 1}};
    Output<Tensor> loss{"loss", f32, {}};

    void generate() override {
        if (!training) {
            loss = mean_loss(model, ids);
            return;
        }
        const std::optional<RankGroup> data = ranks ? std::optional(RankGroup("data")) : std::nullopt;
        const auto over_ranks = [&](const Tensor &x) { return data ? all_reduce_mean(x, *data) : x; };
        if (drop > 0) {
            State<Tensor> &key = add_state("key", u32, {2});
            model.drop = drop, model.key = data ? random_fold_in(key, axis_index(*data)) : key; // each rank drops others
            key = random_fold_in(key, 1);
        }
        const Tensor value = mean_loss(model, ids);
        loss = over_ranks(value);
        std::vector<State<Tensor> *> parameters;
        for (State<Tensor> *state : states())
            if (is_float(state->dtype())) parameters.push_back(state);
        const auto is_matrix = [](const std::string &, const Type &type) { return type.shape.size() > 1; };
        const Schedule cycle = cosine_onecycle_schedule({.transition_steps = steps, .peak_value = rate});
        const Optimizer optimizer =
            chain({clip_by_global_norm(1), adamw({.learning_rate = cycle, .b2 = 0.99, .weight_decay = 0.1, .mask = is_matrix})});
        std::vector<Tensor> gradients = grad(value, values_of(parameters));
        for (Tensor &gradient : gradients) gradient = over_ranks(gradient);
        optimizer.apply(gradients, parameters);
    }
};
SCALIDE_REGISTER_GENERATOR(CharLm, char_lm)
SCALIDE_REGISTER_INITIAL_STATE(CharLm, char_lm_state)

// One token: it writes one row of each cache in place, and returns the logits of the next byte.
class CharLmToken : public Generator<CharLmToken> {
public:
    Model model;
    Input<Tensor> id{"id", i32, {1, 1}}, position{"position", i32, {}};
    Output<Tensor> logits{"logits", f32, {bytes}};

    void generate() override {
        Tensor x = model.embedded(id, reshape(position, {1}));
        const Tensor is_past = reshape(iota({model.length}, 0, i32) <= position, {1, 1, 1, model.length});
        for (int i = 0; i < model.layers; i++) {
            const std::string name = "layer" + std::to_string(i);
            const auto cached = [&](const std::string &part, const Tensor &row) {
                State<Tensor> &cache =
                    add_state("cache." + name + "." + part, f32, {1, model.length, model.heads, model.size()}, initializers::zeros());
                cache = dynamic_update_slice_in_dim(cache, row, position, 1);
                return Tensor(cache);
            };
            x = model.block(name, x, [&](const Tensor &q, const Tensor &k, const Tensor &v) {
                return attention_masked(q, cached("key", k), cached("value", v), is_past);
            });
        }
        logits = reshape(model.logits(x), {bytes});
    }
};
SCALIDE_REGISTER_GENERATOR(CharLmToken, char_lm_token)

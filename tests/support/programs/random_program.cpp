#include "support/programs/random_program.h"
#include "rulebook/builder.h"
#include "support/programs/rules.h"
#include <functional>

namespace scalide {

namespace {

/// A program under construction and the values that a new node may read.
struct Draft {
    Program program;
    Builder builder{rules(), program};
    std::vector<ValueId> pool;
    std::mt19937 &random;

    size_t below(size_t count) { return std::uniform_int_distribution<size_t>(0, count - 1)(random); }
    Extents shape(ValueId value) { return program.type(value).shape; } // a copy: values move when nodes are added

    /// A value that `fits`, drawn from the pool; -1 when there is none.
    ValueId pick(const std::function<bool(ValueId)> &fits) {
        std::vector<ValueId> candidates;
        for (const ValueId value : pool) {
            if (fits(value)) candidates.push_back(value);
        }
        return candidates.empty() ? -1 : candidates[below(candidates.size())];
    }
    ValueId pick_any() { return pool[below(pool.size())]; }
    ValueId pick_rank(int rank) {
        return pick([&](ValueId value) { return program.type(value).rank() == rank; });
    }
    ValueId pick_like(ValueId other) {
        return pick([&](ValueId value) { return shape(value) == shape(other); });
    }
};

/// Adds one node, or a few, and returns the new value; -1 when nothing fits.
using Step = ValueId (*)(Draft &);

template<size_t N>
const char *choose(Draft &draft, const char *const (&words)[N]) {
    return words[draft.below(N)];
}

ValueId unary(Draft &draft) {
    const char *const ops[] = {"tanh", "logistic", "sin", "neg", "abs", "relu", "gelu", "silu", "erf"};
    return draft.builder.add_one(choose(draft, ops), {draft.pick_any()});
}

ValueId binary(Draft &draft) {
    const char *const ops[] = {"add", "sub", "mul", "max", "min"};
    const ValueId x = draft.pick_any();
    return draft.builder.add_one(choose(draft, ops), {x, draft.pick_like(x)});
}

ValueId with_constant(Draft &draft) {
    const char *const ops[] = {"add", "sub", "mul", "div"};
    const double numbers[] = {1, -1, 0.5, 3, -0.0, 0.25, 4};
    const char *op = choose(draft, ops);
    const double number = numbers[draft.below(std::size(numbers))];
    const ValueId x = draft.pick_any();
    const ValueId constant = draft.builder.constant(op == std::string("div") && number == 0 ? 2 : number);
    return draft.builder.add_one(op, {x, draft.builder.broadcast(constant, draft.shape(x))});
}

ValueId with_scalar(Draft &draft) {
    const ValueId x = draft.pick_any(), s = draft.pick_rank(0);
    return draft.builder.add_one("mul", {x, draft.builder.broadcast(s, draft.shape(x))});
}

ValueId reduce(Draft &draft) {
    const char *const ops[] = {"mean", "reduce_max", "reduce_min", "var", "logsumexp"};
    const ValueId x = draft.pick_rank(2);
    return draft.builder.add_one(choose(draft, ops), {x}, {{"axes", to_attribute(std::vector<int64_t>{int64_t(draft.below(2))})}});
}

ValueId normalize(Draft &draft) {
    const char *const ops[] = {"softmax", "log_softmax"};
    return draft.builder.add_one(choose(draft, ops), {draft.pick_rank(2)}, {{"axes", to_attribute(std::vector<int64_t>{1})}});
}

ValueId transposed(Draft &draft) {
    return draft.builder.add_one("transpose", {draft.pick_rank(2)}, {{"permutation", to_attribute(std::vector<int64_t>{1, 0})}});
}

ValueId flattened(Draft &draft) {
    const ValueId x = draft.pick_rank(2);
    return draft.builder.add_one("reshape", {x}, {{"shape", to_attribute(Extents{element_count(draft.shape(x))})}});
}

ValueId reversed(Draft &draft) {
    return draft.builder.add_one("rev", {draft.pick_rank(2)},
                                 {{"dimensions", to_attribute(std::vector<int64_t>{int64_t(draft.below(2))})}});
}

/// Every second element, without the first one, of an axis of known extent.
ValueId sliced(Draft &draft) {
    const ValueId x = draft.pick([&](ValueId value) {
        return draft.program.type(value).rank() == 1 && draft.shape(value)[0].is_static() && draft.shape(value)[0].value() > 2;
    });
    if (x < 0) return -1;
    return draft.builder.add_one("slice", {x},
                                 {{"start", to_attribute(std::vector<int64_t>{1})},
                                  {"limit", to_attribute(draft.shape(x))},
                                  {"strides", to_attribute(std::vector<int64_t>{2})}});
}

ValueId padded(Draft &draft) {
    const ValueId x = draft.pick_rank(1);
    const bool is_known = draft.shape(x)[0].is_static();
    return draft.builder.add_one("pad", {x, draft.pick_rank(0)},
                                 {{"low", to_attribute(std::vector<int64_t>{1})},
                                  {"high", to_attribute(std::vector<int64_t>{int64_t(draft.below(3)) - 1})},
                                  {"interior", to_attribute(std::vector<int64_t>{is_known ? int64_t(draft.below(2)) : 0})}});
}

ValueId concatenated(Draft &draft) {
    const ValueId x = draft.pick_rank(2);
    return draft.builder.add_one("concatenate", {x, draft.pick_like(x), x}, {{"dimension", int64_t(draft.below(2))}});
}

ValueId selected(Draft &draft) {
    const ValueId x = draft.pick_any(), y = draft.pick_like(x);
    return draft.builder.add_one("select_n", {draft.builder.add_one("gt", {x, y}), y, draft.builder.add_one("sin", {x})});
}

/// x y^T / 8 or x^T y / 8.
ValueId product(Draft &draft) {
    const ValueId x = draft.pick_rank(2), y = draft.pick_like(x);
    const auto axis = int64_t(draft.below(2));
    const Attribute axes = to_attribute(std::vector<int64_t>{axis});
    const ValueId dot = draft.builder.add_one("dot_general", {x, y}, {{"contract", std::vector<Attribute>{axes, axes}}});
    return draft.builder.add_one("mul", {dot, draft.builder.broadcast(draft.builder.constant(0.125), draft.shape(dot))});
}

/// sum_bk x[b, k] y[b, k]
ValueId inner_product(Draft &draft) {
    const ValueId x = draft.pick_rank(2), y = draft.pick_like(x);
    const Attribute axes = to_attribute(std::vector<int64_t>{0, 1});
    return draft.builder.add_one("tanh",
                                 {draft.builder.add_one("dot_general", {x, y}, {{"contract", std::vector<Attribute>{axes, axes}}})});
}

ValueId rescaled(Draft &draft) { return draft.builder.add_one("dynamic_rescale", {draft.pick_any()}, {{"norm", "max"}}); }

constexpr Step steps[] = {unary,        unary,     binary,     binary,        with_constant, with_constant, with_scalar,
                          reduce,       normalize, transposed, flattened,     reversed,      sliced,        padded,
                          concatenated, selected,  product,    inner_product, rescaled};

/// The sum over all values of the mean of their tanh.
ValueId total(Draft &draft) {
    ValueId sum = draft.builder.constant(0);
    for (const ValueId value : draft.pool) {
        std::vector<int64_t> axes;
        for (int axis = 0; axis < draft.program.type(value).rank(); axis++) axes.push_back(axis);
        const ValueId bounded = draft.builder.add_one("tanh", {value});
        const ValueId term = axes.empty() ? bounded : draft.builder.add_one("mean", {bounded}, {{"axes", to_attribute(axes)}});
        sum = draft.builder.add_one("add", {sum, term});
    }
    return sum;
}

} // namespace

Program random_program(std::mt19937 &random, int count) {
    Draft draft{{}, {rules(), draft.program}, {}, random};
    Program &program = draft.program;
    program.name = "random";
    const Extent b = Extent::symbol("b");
    const std::pair<const char *, Extents> arguments[] = {{"x", {b, 4}}, {"y", {b, 4}}, {"w", {4, 4}}, {"v", {5}}, {"s", {}}};
    for (const auto &[name, shape] : arguments) {
        program.arguments.push_back({add_value(program, name, {Dtype::f32, shape})});
        draft.pool.push_back(program.arguments.back().value);
    }
    declare_symbols(program);
    for (int i = 0; i < count; i++) {
        const ValueId value = steps[draft.below(std::size(steps))](draft);
        if (value >= 0) draft.pool.push_back(value);
    }
    program.results.push_back({"loss", total(draft)});
    return std::move(draft.program);
}

std::vector<Array> zero_inputs(const Program &program, const Extent::Bindings &symbols) {
    std::vector<Array> inputs;
    for (const Argument &argument : program.arguments) {
        const Type &type = program.type(argument.value);
        Array array{type.dtype, {}, std::vector<double>(static_cast<size_t>(element_count(type.shape).evaluate(symbols)))};
        for (const Extent &extent : type.shape) array.shape.push_back(extent.evaluate(symbols));
        inputs.push_back(std::move(array));
    }
    return inputs;
}

std::vector<Array> random_inputs(const Program &program, std::mt19937 &random) {
    std::uniform_real_distribution<float> uniform(-1, 1);
    std::vector<Array> inputs = zero_inputs(program, {{"b", 3}});
    for (Array &array : inputs)
        for (double &element : array.data) element = uniform(random);
    return inputs;
}

} // namespace scalide

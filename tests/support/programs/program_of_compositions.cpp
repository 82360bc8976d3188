#include "support/programs/program_of_compositions.h"
#include "support/programs/composition_draft.h"
#include "support/programs/rules.h"
#include "transforms/analysis/passes.h"
#include <limits>
#include <numeric>
#include <utility>

namespace scalide {

namespace {

using Integers = std::vector<int64_t>;

constexpr int64_t most_products = 4000000; ///< of a matmul: the interpreter computes them one by one

class Draft : CompositionDraft {
public:
    explicit Draft(std::mt19937 &random) : CompositionDraft(random) {}

    Program take(unsigned seed);

private:
    /// Replaces the current value by a function of it.
    using Stage = void (Draft::*)();
    struct Kind {
        int rank; ///< of the argument that a program of this kind begins with
        Stage stage;
    };
    static const Kind kinds[17];
    static const Stage epilogues[23];

    /// Contracts an axis of the value and one of `other`, which have the same extent.
    void contract(ValueId other, int64_t axis, int64_t other_axis, bool batched = false) {
        Attributes attributes{{"contract", std::vector<Attribute>{to_attribute(Integers{axis}), to_attribute(Integers{other_axis})}}};
        if (batched) attributes["batch"] = std::vector<Attribute>{to_attribute(Integers{0}), to_attribute(Integers{0})};
        value_ = add("dot_general", {value_, other}, attributes);
    }
    Extent columns_of_product(const Extents &others) {
        return extent_beside(others, std::min(most_elements, std::max(most_products / count(shape()), int64_t(1)) * count(others)));
    }
    void product() {
        const Extents rows = without(rank() - 1);
        contract(array({last(), columns_of_product(rows)}), rank() - 1, 0);
    }
    void batched() {
        const Extents rows = without(rank() - 1), weights{shape()[0], last()};
        contract(array({shape()[0], last(), columns_of_product(count(rows) > count(weights) ? rows : weights)}), rank() - 1, 1, true);
    }
    void transposed() {
        const Extents rest = without(0);
        contract(array({shape()[0], columns_of_product(rest)}), 0, 0);
    }
    /// x x^T, of matrices or of a batch of them.
    void squared() {
        const Extents rows = without(rank() - 1);
        const bool fits = rank() <= 3 && count(rows) * count({shape()[size_t(rank()) - 2]}) <= most_elements;
        fits ? contract(value_, rank() - 1, rank() - 1, rank() == 3) : product();
    }
    /// Channels are the last axis; all axes between the first one and the last are spatial.
    void convolution() {
        if (rank() == 2) value_ = add("reshape", {value_}, {{"shape", to_attribute(Extents{1, shape()[0], shape()[1]})}});
        const int64_t spatial = rank() - 2;
        const Extent channels = columns_of_product(without(rank() - 1));
        Extents weights(size_t(spatial), 3);
        weights.insert(weights.end(), {last(), channels});
        Integers lhs{0, rank() - 1}, rhs{spatial + 1, spatial};
        for (int64_t axis = 0; axis < spatial; axis++) lhs.push_back(axis + 1), rhs.push_back(axis);
        const Attribute ones = to_attribute(Integers(size_t(spatial), 1));
        value_ = add("conv_general_dilated", {value_, array(weights)},
                     {{"low", ones},
                      {"high", ones},
                      {"lhs_spec", to_attribute(lhs)},
                      {"rhs_spec", to_attribute(rhs)},
                      {"out_spec", to_attribute(lhs)}});
    }
    int64_t some_axis() { return coin() ? rank() - 1 : below(rank()); }
    void softmax() {
        static const char *const ops[] = {"softmax", "softmax", "log_softmax"};
        value_ = add(pick(ops), {value_}, {{"axes", to_attribute(Integers{some_axis()})}});
    }
    void norm() {
        const bool has_bias = coin();
        std::vector<ValueId> operands{value_, array({last()})};
        if (has_bias) operands.push_back(array({last()}));
        value_ = add(has_bias ? "layer_norm" : "rms_norm", operands);
    }
    void map() {
        static const char *const ops[] = {"tanh", "gelu", "silu", "square", "logistic", "relu", "neg"};
        value_ = add(pick(ops), {value_});
    }
    void gather() {
        const int64_t axis = below(rank());
        const ValueId places = argument({Dtype::i32, {extent_beside(without(axis))}});
        value_ = add("take", {value_, places}, {{"axis", axis}, {"mode", "clip"}});
    }
    void scan() {
        static const char *const ops[] = {"cumsum", "cummax"}, *const words[] = {"true", "false"};
        value_ = add(pick(ops), {value_}, {{"axis", some_axis()}, {"reverse", pick(words)}});
    }
    void sort() { value_ = add("sort", {value_}, {{"dimension", some_axis()}}); }
    void pool() {
        static const char *const ops[] = {"reduce_window_max", "reduce_window_sum", "reduce_window_min"};
        Integers window(size_t(rank()), 1), padding(size_t(rank()), 0);
        for (int64_t axis = rank() - 2; axis < rank(); axis++)
            window[size_t(axis)] = coin() ? 3 : 1, padding[size_t(axis)] = window[size_t(axis)] / 2;
        value_ =
            add(pick(ops), {value_}, {{"window", to_attribute(window)}, {"low", to_attribute(padding)}, {"high", to_attribute(padding)}});
    }
    void transposition() {
        Integers permutation(static_cast<size_t>(rank()));
        std::iota(permutation.begin(), permutation.end(), 0);
        std::swap(permutation[size_t(below(rank() - 1))], permutation.back());
        value_ = add("transpose", {value_}, {{"permutation", to_attribute(permutation)}});
    }
    void attention() {
        static const char *const words[] = {"true", "false"};
        if (rank() < 3) return attention_by_hand();
        if (rank() == 3) value_ = add("reshape", {value_}, {{"shape", to_attribute(Extents{shape()[0], shape()[1], 1, shape()[2]})}});
        const ValueId key = coin() ? value_ : array(shape()), query = coin() ? value_ : array(shape());
        value_ = add("attention", {query, key, value_}, {{"causal", pick(words)}});
    }
    /// softmax(where(i >= j, x x^T, -inf)) x
    void attention_by_hand() {
        if (rank() > 3) return attention();
        const ValueId values = value_;
        squared();
        if (!(rank() == type(values).rank() && last() == shape()[size_t(rank()) - 2])) return;
        select_by(0, -std::numeric_limits<double>::infinity());
        value_ = add("softmax", {value_}, {{"axes", to_attribute(Integers{rank() - 1})}});
        contract(values, rank() - 1, rank() - 2, rank() == 3);
    }

    void select_by(size_t form, double masked) {
        static const char *const joins[] = {"and", "or"};
        ValueId where = mask(form);
        if (below(4) == 0) where = add(pick(joins), {where, mask(size_t(below(mask_forms)))});
        const bool fits = type(first_) == type(value_);
        const ValueId other = below(4) > 0 ? broadcast(builder_.constant(masked)) : fits ? first_ : add("tanh", {value_});
        const bool is_first = below(4) == 0;
        value_ = add("select_n", {where, is_first ? value_ : other, is_first ? other : value_});
    }
    template<int form>
    void select() {
        static const double numbers[] = {0, 0, -1e9, 2.5};
        select_by(form, pick(numbers));
    }

    template<int number>
    void reduce() {
        Integers forms(reduction_forms);
        std::iota(forms.begin(), forms.end(), 0);
        std::ranges::shuffle(forms, random_);
        for (int i = 0; i < number; i++) outputs_.push_back(reduced(Reduction(forms[size_t(i)])));
    }
    /// A bool of rank 0 that depends on all elements.
    ValueId predicate() {
        static const Reduction forms[] = {any, all, finite, sum, max};
        const Reduction form = pick(forms);
        const ValueId value = reduced(form);
        return form == sum || form == max ? add("gt", {value, builder_.constant(0.25)}) : value;
    }
    /// In the shape of the value.
    ValueId branch() {
        switch (below(count({last(), last()}) <= most_elements ? 6 : 5)) {
        case 0: return with_number("mul", value_, 2);
        case 1: return add("tanh", {value_});
        case 2: return broadcast(builder_.constant(0));
        case 3: return with_number("sub", value_, 1);
        case 4: return array(shape());
        default: break;
        }
        const ValueId before = value_;
        contract(array({last(), last()}), rank() - 1, 0);
        return std::exchange(value_, before);
    }
    void select_by_predicate() { value_ = add("select_n", {predicate(), branch(), value_}); }
    void cond() {
        const ValueId other = branch();
        value_ = add("select_n", {predicate(), other, branch()});
    }
    void clip() {
        const auto bound = [&](double number) { return broadcast(builder_.constant(number)); };
        const ValueId low = bound(-0.75), high = bound(1.5);
        value_ = add("clamp", {low, value_, high});
    }
    /// x min(1, limit / |x|)
    void clip_by_norm() {
        const ValueId limit = builder_.constant(coin() ? 1 : 100), one = builder_.constant(1);
        const ValueId factor = add("min", {one, add("div", {limit, reduced(l2)})});
        value_ = add("mul", {value_, broadcast(factor)});
    }
    /// (x - mean(x)) / max(1, max(x))
    void standardise() {
        const ValueId centred = add("sub", {value_, broadcast(reduced(mean))});
        value_ = add("div", {centred, broadcast(add("max", {reduced(max), builder_.constant(1)}))});
    }
    void skip() { value_ = add("add", {value_, type(first_) == type(value_) ? first_ : array(shape())}); }
    void cast() {
        static const Dtype dtypes[] = {Dtype::bf16, Dtype::f16, Dtype::f8_e4m3fn, Dtype::f8_e5m2};
        const ValueId narrow = builder_.convert(value_, pick(dtypes));
        if (coin()) outputs_.push_back(narrow);
        value_ = builder_.convert(narrow, Dtype::f32);
    }
    void concatenate() {
        std::vector<ValueId> parts{value_, coin() ? add("neg", {value_}) : array(shape())};
        if (below(3) == 0) parts.push_back(value_);
        if (coin()) std::swap(parts[0], parts[1]);
        value_ = add("concatenate", parts, {{"dimension", below(rank())}});
    }
    void differentiate() { is_gradient_ = true; }

    void add_some_kind() { (this->*pick(kinds).stage)(); }
    void add_some_epilogue() { (this->*epilogues[below(last_epilogue)])(); }
    static constexpr int64_t last_epilogue = 20; ///< the ones before it replace the value
    void add_results();
    void add_gradient();

    std::vector<ValueId> outputs_;
    bool is_gradient_ = false;
};

const Draft::Kind Draft::kinds[17] = {{2, &Draft::product},
                                      {3, &Draft::batched},
                                      {2, &Draft::transposed},
                                      {2, &Draft::squared},
                                      {3, &Draft::convolution},
                                      {4, &Draft::convolution},
                                      {2, &Draft::softmax},
                                      {2, &Draft::norm},
                                      {2, &Draft::map},
                                      {2, &Draft::gather},
                                      {2, &Draft::scan},
                                      {2, &Draft::sort},
                                      {2, &Draft::pool},
                                      {2, &Draft::transposition},
                                      {4, &Draft::attention},
                                      {3, &Draft::squared},
                                      {2, &Draft::attention_by_hand}};

const Draft::Stage Draft::epilogues[23] = {&Draft::select<0>,           &Draft::select<1>, &Draft::select<2>,    &Draft::select<3>,
                                           &Draft::select<4>,           &Draft::select<5>, &Draft::select<6>,    &Draft::select<7>,
                                           &Draft::select<8>,           &Draft::select<9>, &Draft::select<10>,   &Draft::select<11>,
                                           &Draft::select_by_predicate, &Draft::cond,      &Draft::clip,         &Draft::clip_by_norm,
                                           &Draft::standardise,         &Draft::skip,      &Draft::cast,         &Draft::concatenate,
                                           &Draft::reduce<2>,           &Draft::reduce<3>, &Draft::differentiate};

Program Draft::take(unsigned seed) {
    const Kind &kind = kinds[seed % std::size(kinds)];
    begin(kind.rank);
    if (below(5) == 0) add_some_epilogue();
    (this->*kind.stage)();
    if (below(4) == 0) add_some_epilogue();
    (this->*epilogues[seed % std::size(epilogues)])();
    if (below(4) == 0) add_some_kind();
    if (below(3) == 0) add_some_epilogue();
    if (below(4) == 0) reduce<2>();
    add_results();
    if (is_gradient_ || below(4) == 0) add_gradient();
    for (Symbol &symbol : program_.symbols) symbol.minimum = needs_elements_ || coin();
    return std::move(program_);
}

void Draft::add_results() {
    if (outputs_.empty() || coin()) outputs_.push_back(value_);
    for (const ValueId value : outputs_) program_.results.push_back({"r" + std::to_string(program_.results.size()), value});
}

/// The loss reads every result that has a gradient; the results become the loss and its gradient.
void Draft::add_gradient() {
    ValueId loss = builder_.constant(0);
    for (const Result &result : std::exchange(program_.results, {})) {
        if (!is_float(type(result.value).dtype)) continue;
        value_ = add("tanh", {builder_.convert(result.value, Dtype::f32)});
        loss = add("add", {loss, rank() == 0 ? value_ : reduced(mean)});
    }
    std::vector<ValueId> arguments;
    for (const Argument &argument : program_.arguments)
        if (type(argument.value).dtype == Dtype::f32) arguments.push_back(argument.value);
    program_.results.push_back({"loss", loss});
    const std::vector<ValueId> gradients = append_gradient(program_, rules(), loss, arguments);
    for (size_t i = 0; i < gradients.size(); i++) program_.results.push_back({"gradient" + std::to_string(i), gradients[i]});
}

} // namespace

Program program_of_compositions(unsigned seed, std::mt19937 &random) { return Draft(random).take(seed); }

} // namespace scalide

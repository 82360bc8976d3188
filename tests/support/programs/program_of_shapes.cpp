#include "support/programs/program_of_shapes.h"
#include "rulebook/builder.h"
#include "support/programs/rules.h"
#include <algorithm>
#include <numeric>
#include <set>

namespace scalide {

namespace {

using Integers = std::vector<int64_t>;

/// A program under construction. A step adds a node and returns its value; -1 where nothing fits.
class Draft {
public:
    explicit Draft(std::mt19937 &random) : random_(random) { program_.name = "shapes"; }

    Program take(int count) {
        add_argument();
        if (below(2) == 0) add_argument();
        declare_symbols(program_);
        for (int made = 0, tries = 0; made < count && tries < 20 * count; tries++) made += add_step();
        add_results();
        return std::move(program_);
    }

private:
    using Step = ValueId (Draft::*)(ValueId);

    int64_t below(int64_t count) { return std::uniform_int_distribution<int64_t>(0, count - 1)(random_); }
    template<typename List>
    const auto &pick(const List &list) {
        return list[size_t(below(int64_t(std::size(list))))];
    }
    const Type &type(ValueId value) const { return program_.type(value); }
    int64_t rank(ValueId value) const { return type(value).rank(); }
    bool is_f32(ValueId value) const { return type(value).dtype == Dtype::f32; }
    Attribute axis_of(ValueId value) { return Attribute(below(rank(value))); }

    Integers some_axes(ValueId value) {
        Integers axes(static_cast<size_t>(rank(value)));
        std::iota(axes.begin(), axes.end(), 0);
        std::ranges::shuffle(axes, random_);
        axes.resize(size_t(1 + below(rank(value))));
        std::ranges::sort(axes);
        return axes;
    }

    void add_argument() {
        static const Dtype dtypes[] = {Dtype::f32,       Dtype::f32,     Dtype::f32, Dtype::f16, Dtype::bf16,
                                       Dtype::f8_e4m3fn, Dtype::f8_e5m2, Dtype::i32, Dtype::u8,  Dtype::boolean};
        static const Extent extents[] = {Extent::symbol("b"), Extent::symbol("n"), Extent::symbol("m"), 4, 3, 8, 5, 1, 17, 64, 33, 2};
        static const int ranks[] = {1, 2, 2, 2, 3, 3, 4};
        Type drawn{pick(dtypes), {}};
        for (int rank = pick(ranks); rank > 0; rank--) drawn.shape.push_back(pick(extents));
        const ValueId value = add_value(program_, "x" + std::to_string(program_.arguments.size()), drawn);
        program_.arguments.push_back({value});
        const bool is_narrow = is_float(drawn.dtype) && drawn.dtype != Dtype::f32;
        pool_.push_back(is_narrow ? builder_.convert(value, Dtype::f32) : value);
    }

    bool add_step() {
        static constexpr Step steps[] = {
            &Draft::transposed, &Draft::sliced, &Draft::reversed, &Draft::padded,  &Draft::doubled,   &Draft::reduced,  &Draft::reduced,
            &Draft::reduced,    &Draft::mapped, &Draft::mapped,   &Draft::joined,  &Draft::joined,    &Draft::repeated, &Draft::repeated,
            &Draft::scanned,    &Draft::found,  &Draft::normal,   &Draft::product, &Draft::flattened, &Draft::narrowed, &Draft::pooled};
        const size_t recent = std::min<size_t>(pool_.size(), 4);
        const ValueId value = below(5) > 0 ? pool_[pool_.size() - 1 - size_t(below(int64_t(recent)))] : pick(pool_);
        if (rank(value) == 0 && below(8) > 0) return false;
        const Step step = pick(steps);
        if (rank(value) == 0 && step != &Draft::mapped && step != &Draft::joined && step != &Draft::repeated) return false;
        const ValueId made = (this->*step)(value);
        if (made < 0) return false;
        pool_.push_back(made);
        return true;
    }

    /// A value whose elements equal the interpreter's to the bit where those of `from` do.
    ValueId exact(ValueId from, ValueId made) {
        if (rounded_.contains(from)) rounded_.insert(made);
        return made;
    }
    ValueId rounded(ValueId made) {
        rounded_.insert(made);
        return made;
    }

    ValueId transposed(ValueId x) {
        if (rank(x) < 2) return -1;
        Integers permutation(static_cast<size_t>(rank(x)));
        std::iota(permutation.begin(), permutation.end(), 0);
        std::ranges::shuffle(permutation, random_);
        return exact(x, builder_.add_one("transpose", {x}, {{"permutation", to_attribute(permutation)}}));
    }

    ValueId sliced(ValueId x) {
        const size_t axis = size_t(below(rank(x)));
        const Extents shape = type(x).shape;
        if (!shape[axis].is_static() || shape[axis].value() < 2) return -1;
        Integers start(shape.size()), strides(shape.size(), 1);
        Extents limit = shape;
        start[axis] = below(shape[axis].value());
        strides[axis] = 1 + below(3);
        limit[axis] = start[axis] + 1 + below(shape[axis].value() - start[axis]);
        return exact(
            x, builder_.add_one("slice", {x},
                                {{"start", to_attribute(start)}, {"limit", to_attribute(limit)}, {"strides", to_attribute(strides)}}));
    }

    ValueId reversed(ValueId x) { return exact(x, builder_.add_one("rev", {x}, {{"dimensions", to_attribute(some_axes(x))}})); }

    ValueId padded(ValueId x) {
        if (type(x).dtype == Dtype::boolean) return -1;
        static const int64_t lows[] = {0, 0, 1, 2, -1}, highs[] = {0, 0, 1, 3};
        Integers low, high, interior(type(x).shape.size());
        for (const Extent &extent : type(x).shape) {
            low.push_back(pick(lows));
            high.push_back(pick(highs));
            if (low.back() + high.back() < 0 && extent == Extent(1)) return -1;
            if (low.back() < 0 && !extent.is_static()) high.back() = std::max<int64_t>(high.back(), 1);
        }
        const ValueId zero = builder_.constant(0, type(x).dtype);
        return exact(x, builder_.add_one("pad", {x, zero},
                                         {{"low", to_attribute(low)}, {"high", to_attribute(high)}, {"interior", to_attribute(interior)}}));
    }

    ValueId doubled(ValueId x) { return exact(x, builder_.add_one("concatenate", {x, x}, {{"dimension", axis_of(x)}})); }

    ValueId reduced(ValueId x) {
        static const char *const ops[] = {"reduce_sum", "reduce_sum", "reduce_max", "reduce_min"};
        if (type(x).dtype == Dtype::boolean) return -1;
        const std::string op = pick(ops);
        const ValueId made = builder_.add_one(op, {x}, {{"axes", to_attribute(some_axes(x))}});
        return op == "reduce_sum" && is_f32(x) ? rounded(made) : exact(x, made);
    }

    ValueId mapped(ValueId x) {
        static const char *const ops[] = {"tanh", "logistic", "abs", "neg", "exp", "square", "relu"};
        return is_f32(x) && !is_steep(x) ? rounded(builder_.add_one(pick(ops), {x})) : -1;
    }

    /// Exponentials of exponentials are infinite or nearly so.
    bool is_steep(ValueId x) { return rounded_.contains(x) && below(2) == 0; }

    ValueId joined(ValueId x) {
        static const char *const arithmetic[] = {"add", "mul", "sub", "max"}, *const logic[] = {"and", "or", "xor"};
        std::vector<ValueId> alike;
        std::ranges::copy_if(pool_, std::back_inserter(alike), [&](ValueId y) { return type(y) == type(x); });
        const ValueId y = pick(alike);
        if (type(x).dtype == Dtype::boolean) return builder_.add_one(pick(logic), {x, y});
        const ValueId made = builder_.add_one(pick(arithmetic), {x, y});
        return is_f32(x) ? rounded(made) : made;
    }

    ValueId repeated(ValueId x) {
        if (rank(x) >= 4) return -1;
        static const Extent known[] = {3, 4, 16};
        const bool takes_symbol = !program_.symbols.empty() && below(2) == 0;
        const int64_t place = below(rank(x) + 1);
        Extents shape = type(x).shape;
        shape.insert(shape.begin() + place, takes_symbol ? Extent::symbol(pick(program_.symbols).name) : pick(known));
        Integers dims;
        for (int64_t axis = 0; axis <= rank(x); axis++)
            if (axis != place) dims.push_back(axis);
        return exact(x, builder_.add_one("broadcast_in_dim", {x}, {{"shape", to_attribute(shape)}, {"dims", to_attribute(dims)}}));
    }

    ValueId scanned(ValueId x) {
        static const char *const ops[] = {"cumsum", "cummax"}, *const words[] = {"true", "false"};
        if (type(x).dtype == Dtype::boolean) return -1;
        const std::string op = pick(ops);
        const ValueId made = builder_.add_one(op, {x}, {{"axis", axis_of(x)}, {"reverse", pick(words)}});
        return op == "cumsum" && is_f32(x) ? rounded(made) : exact(x, made);
    }

    ValueId found(ValueId x) {
        static const char *const ops[] = {"argmax", "argmin", "sort"};
        const std::string op = pick(ops);
        if (type(x).dtype == Dtype::boolean || rounded_.contains(x)) return -1;
        return builder_.add_one(op, {x}, {{op == "sort" ? "dimension" : "axis", axis_of(x)}});
    }

    ValueId normal(ValueId x) {
        static const char *const ops[] = {"softmax", "log_softmax"};
        if (!is_f32(x)) return -1;
        return rounded(builder_.add_one(pick(ops), {x}, {{"axes", to_attribute(Integers{below(rank(x))})}}));
    }

    ValueId product(ValueId x) {
        if (rank(x) != 2 || !is_f32(x)) return -1;
        for (const ValueId y : pool_) {
            const int64_t i = below(2), j = below(2);
            if (rank(y) != 2 || !is_f32(y) || !(type(x).shape[size_t(i)] == type(y).shape[size_t(j)])) continue;
            const std::vector<Attribute> axes = {to_attribute(Integers{i}), to_attribute(Integers{j})};
            return rounded(builder_.add_one("dot_general", {x, y}, {{"contract", axes}}));
        }
        return -1;
    }

    /// The last two axes as one.
    ValueId flattened(ValueId x) {
        if (rank(x) < 2) return -1;
        Extents shape = type(x).shape;
        const Extent last = shape.back();
        shape.pop_back();
        shape.back() = shape.back() * last;
        return exact(x, builder_.add_one("reshape", {x}, {{"shape", to_attribute(shape)}}));
    }

    ValueId narrowed(ValueId x) {
        static const Dtype dtypes[] = {Dtype::f16, Dtype::bf16, Dtype::f8_e4m3fn};
        if (!is_f32(x)) return -1;
        const ValueId narrow = builder_.convert(x, pick(dtypes));
        narrow_.push_back(narrow);
        return exact(x, builder_.convert(narrow, Dtype::f32));
    }

    ValueId pooled(ValueId x) {
        static const char *const ops[] = {"reduce_window_max", "reduce_window_sum"};
        Integers window, strides(type(x).shape.size(), 1);
        for (const Extent &extent : type(x).shape) {
            window.push_back(1 + below(3));
            if (!extent.is_static() || extent.value() < window.back()) return -1;
        }
        if (type(x).dtype == Dtype::boolean) return -1;
        const std::string op = pick(ops);
        const ValueId made = builder_.add_one(op, {x}, {{"window", to_attribute(window)}, {"strides", to_attribute(strides)}});
        return op == "reduce_window_sum" && is_f32(x) ? rounded(made) : exact(x, made);
    }

    void add_results() {
        const std::vector<int> uses = count_uses(program_), makers = producers(program_);
        std::vector<ValueId> candidates = pool_;
        candidates.insert(candidates.end(), narrow_.begin(), narrow_.end());
        for (const ValueId value : candidates) {
            if (makers[value] < 0 || (uses[value] > 0 && below(5) > 0)) continue;
            program_.results.push_back({"r" + std::to_string(program_.results.size()), value});
        }
        if (program_.results.empty()) program_.results.push_back({"r0", builder_.add_one("neg", {builder_.constant(1)})});
    }

    std::mt19937 &random_;
    Program program_;
    Builder builder_{rules(), program_};
    std::vector<ValueId> pool_, narrow_;
    std::set<ValueId> rounded_; ///< whose last bits may differ from the interpreter's
};

} // namespace

Program program_of_shapes(std::mt19937 &random, int count) { return Draft(random).take(count); }

} // namespace scalide

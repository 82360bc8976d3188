#include "lower/rows/reduction.h"
#include "expr/base_operators.h"
#include "ir/evaluation.h"
#include "lower/formats/formats.h"
#include "lower/formats/integers.h"
#include "lower/halide/strict.h"
#include "lower/values/movement.h"

namespace scalide {
using Halide::Expr;
using Partial = std::vector<Expr>;

namespace {

constexpr int fold_lanes = 16; ///< lanes that `fold` combines in scalar code

/// Additions are strict, so that Halide neither reorders lanes nor contracts a product into a sum.
Partial add(const Partial &a, const Partial &b) { return {a[0].type().is_float() ? strict_add(a[0], b[0]) : integers::add(a[0], b[0])}; }
Partial multiply(const Partial &a, const Partial &b) {
    return {a[0].type().is_float() ? strict_mul(a[0], b[0]) : integers::mul(a[0], b[0])};
}
Partial larger(const Partial &a, const Partial &b) { return {max(a[0], b[0])}; }
Partial smaller(const Partial &a, const Partial &b) { return {min(a[0], b[0])}; }
Partial bits_of_both(const Partial &a, const Partial &b) { return {a[0] & b[0]}; }
Partial bits_of_either(const Partial &a, const Partial &b) { return {a[0] | b[0]}; }
Partial bits_of_one(const Partial &a, const Partial &b) { return {a[0] ^ b[0]}; }

// argmax and argmin: of equal elements, the first one wins.
Partial pick(const Partial &a, const Partial &b, const Expr &b_beats_a) {
    Expr take_b = b_beats_a || (b[0] == a[0] && b[1] < a[1]);
    return {Halide::select(take_b, b[0], a[0]), Halide::select(take_b, b[1], a[1])};
}

Partial first_largest(const Partial &a, const Partial &b) { return pick(a, b, b[0] > a[0]); }
Partial first_smallest(const Partial &a, const Partial &b) { return pick(a, b, b[0] < a[0]); }

// Floats are compared as integers. This takes one instruction for a vector; -0, +0 and NaN would take seven. The key of a positive float is
// its bits. For a negative float, all bits but the sign are flipped. NaN has the key that wins.
Expr flip_negative(const Expr &bits) { return bits ^ ((bits >> 31) & std::numeric_limits<int>::max()); }
Expr order_key(const Expr &x, int nan_key) {
    return Halide::select(scalide::is_nan(x), nan_key, flip_negative(Halide::reinterpret<int32_t>(x)));
}
// The bits of a magnitude are its key. Those of NaN are larger than those of infinity. The sign bit is cleared because a conversion may
// return a negative NaN. LLVM removes this if it has no effect.
Expr magnitude_key(const Expr &x) { return Halide::reinterpret<int32_t>(x) & std::numeric_limits<int>::max(); }
Expr from_order_key(const Expr &key) { return Halide::reinterpret<float>(flip_negative(key)); }

using Combine = Partial (*)(const Partial &, const Partial &);

/// How partial results of a reduction combine.
struct FoldRow {
    std::string_view step; ///< BaseOperator::fold
    Combine combine;
    Combine combine_places = nullptr; ///< the same for elements with indices
    int nan_key = 0;                  ///< for floats that are compared by order_key; 0: they are not
};

constexpr int largest = std::numeric_limits<int>::max(), smallest = std::numeric_limits<int>::min();

constexpr FoldRow folds[] = {{"add", add},
                             {"mul", multiply},
                             {"max", larger, first_largest, largest},
                             {"min", smaller, first_smallest, smallest},
                             {"and", bits_of_both},
                             {"or", bits_of_either},
                             {"xor", bits_of_one}};

const FoldRow &fold_of(const Node &node) {
    const auto *found = std::ranges::find(folds, base_operator(node.op).fold, &FoldRow::step);
    internal_check(found != std::end(folds), node.op + " is no reduction");
    return *found;
}

/// True for absolute values that are at most moved and converted between floats afterwards.
bool is_magnitude(const Program &program, ValueId value) {
    for (auto node = program.nodes.rbegin(); node != program.nodes.rend(); ++node) {
        if (node->results[0] != value) continue;
        if (node->op == "abs") return true;
        constexpr std::string_view keep[] = {"convert_element_type", "broadcast_in_dim", "reshape", "transpose"};
        if (std::ranges::find(keep, node->op) == std::end(keep) || !is_float(program.type(node->operands[0]).dtype)) return false;
        value = node->operands[0];
    }
    return false;
}

} // namespace

Reduction::Reduction(const Program &program, const Node &node)
    : node_(&node), dtype_(program.type(node.operands[0]).dtype), has_places_(base_operator(node.op).gives_place),
      is_of_magnitudes_(node.op == "reduce_max" && is_float(dtype_) && is_magnitude(program, node.operands[0])) {
    fold_of(node);
}

int Reduction::size() const { return has_places_ ? 2 : 1; }

bool Reduction::has_keys() const { return is_float(dtype_) && fold_of(*node_).nan_key != 0; }

Partial Reduction::identity() const {
    const double start = base_operator(fold_of(*node_).step).fold_start.value();
    const Expr value = make_constant(dtype_, fold_start(dtype_, start));
    return is_of_magnitudes_ ? Partial{order_key(value, largest)} : term(value, largest);
}

Partial Reduction::term(const Expr &value, const Expr &position) const {
    if (is_of_magnitudes_) return {magnitude_key(value)};
    Expr same_zero = has_places_ && has_keys() ? strict_add(value, 0.0f) : value; // -0 and +0 are equal, so the first one wins
    Partial result = {has_keys() ? order_key(same_zero, fold_of(*node_).nan_key) : to_word(dtype_, value)};
    if (has_places_) {
        result.push_back(position);
    }
    return result;
}

Partial Reduction::combine(const Partial &a, const Partial &b) const {
    const FoldRow &fold = fold_of(*node_);
    return has_places_ ? fold.combine_places(a, b) : fold.combine(a, b);
}

Expr Reduction::result(const Partial &partial) const {
    if (has_places_) {
        return partial[1];
    }
    return has_keys() ? from_order_key(partial[0]) : from_word(dtype_, partial[0]);
}

Halide::Tuple ReductionGroup::identity() const {
    Partial all;
    for (const Reduction &reduction : reductions_) {
        for (const Expr &e : reduction.identity()) {
            all.push_back(e);
        }
    }
    return Halide::Tuple(all);
}

Halide::Tuple ReductionGroup::combine(const Partial &a, const Partial &b) const {
    Partial all;
    for (const Reduction &reduction : reductions_) {
        auto first = all.size();
        auto part = [&](const Partial &p) { return Partial(p.begin() + first, p.begin() + first + reduction.size()); };
        for (const Expr &e : reduction.combine(part(a), part(b))) {
            all.push_back(e);
        }
    }
    return Halide::Tuple(all);
}

Partial ReductionGroup::terms(Values &values, const Index &index, const Expr &position) const {
    Partial all;
    for (const Reduction &reduction : reductions_) {
        for (const Expr &e : reduction.term(values.at(reduction.node().operands[0], index), position)) {
            all.push_back(e);
        }
    }
    return all;
}

Halide::Tuple ReductionGroup::tree(std::vector<Partial> partials) const {
    while (partials.size() > 1) {
        std::vector<Partial> next;
        for (size_t i = 0; i < partials.size(); i += 2) {
            next.push_back(i + 1 < partials.size() ? combine(partials[i], partials[i + 1]).as_vector() : partials[i]);
        }
        partials = next;
    }
    return Halide::Tuple(partials[0]);
}

void ReductionGroup::bind(Values &values, const Halide::Func &fold, const Expr &thread) const {
    const int all = int(identity().size());
    int first = 0;
    for (const Reduction &reduction : reductions_) {
        values.bind(reduction.node().results[0], [=](const Index &index) {
            Partial place = buffer_order(index);
            if (thread.defined()) place.insert(place.begin(), thread);
            const Partial partials = components(fold(place), all);
            return reduction.result(Partial(partials.begin() + first, partials.begin() + first + reduction.size()));
        });
        first += reduction.size();
    }
}

Partial components(const Halide::FuncRef &ref, int size) {
    if (size == 1) {
        return {Expr(ref)};
    }
    Partial result;
    for (int i = 0; i < size; i++) {
        result.push_back(ref[i]);
    }
    return result;
}

namespace {

/// The stages of one reduce_lanes() call.
class LaneReduction {
public:
    LaneReduction(Lowering &lowering, const ReductionGroup &group, const ReductionSpace &space, LaneStages &stages)
        : lowering_(lowering), group_(group), space_(space), stages_(stages), size_(int(group.identity().size())) {}

    Halide::Func build() {
        const Halide::Func partial = add_partial();
        Halide::Func lane = space_.lanes > fold_lanes ? fold_vectors(partial) : partial;
        stages_.lane.push_back(lane);
        stages_.block.emplace_back();
        return fold(lane, std::min(space_.lanes, fold_lanes));
    }

    Halide::Func add_partial() {
        Halide::Func partial = make("partial", stages_.partial);
        assign(partial(with(lane_)), group_.identity());
        if (!lowering_.target.has_gpu_feature()) partial.bound(lane_, 0, space_.lanes); // on a GPU, each thread has one lane
        accumulate(partial, space_.columns / space_.lanes, lane_, [&](const Expr &step) { return step * space_.lanes + lane_; });
        Expr rest = Halide::Internal::simplify(space_.columns % space_.lanes);
        if (!Halide::Internal::is_const_zero(rest)) {
            Expr done = space_.columns - rest;
            accumulate_rest(partial, rest, done);
        }
        return partial;
    }

private:
    static Halide::Func make(const std::string &name, std::vector<Halide::Func> &stages) {
        stages.push_back(Halide::Func(name + "_" + std::to_string(stages.size())));
        return stages.back();
    }

    std::vector<Expr> with(const Expr &lane) const {
        std::vector<Expr> args = {lane};
        args.insert(args.end(), space_.outer.begin(), space_.outer.end());
        return args;
    }

    /// Returns an RDom over (columns, steps).
    Halide::RDom domain(const Expr &columns) const {
        std::vector<Halide::Range> ranges = {{0, columns}};
        ranges.insert(ranges.end(), space_.steps.begin(), space_.steps.end());
        Halide::RDom r(ranges);
        if (!Halide::Internal::is_const_one(space_.is_any)) r.where(space_.is_any);
        return r;
    }

    void update(const Halide::Func &partial, Halide::RDom r, const Expr &lane, const Expr &column) {
        Index steps;
        for (int i = 1; i < r.dimensions(); i++) {
            steps.push_back(r[i]);
        }
        const Index index = space_.at(steps, column);
        Partial terms = space_.terms ? space_.terms(index) : group_.terms(lowering_.values, index, index.back());
        if (space_.inside) terms = terms_where(space_.inside(steps, column), group_, terms);
        assign(partial(with(lane)), over(r, group_.combine(components(partial(with(lane)), size_), terms)));
    }

    void accumulate(const Halide::Func &partial, const Expr &vectors, const Expr &lane, const std::function<Expr(const Expr &)> &column) {
        Halide::RDom r = domain(Halide::Internal::simplify(vectors));
        update(partial, r, lane, column(r[0]));
    }

    void accumulate_rest(const Halide::Func &partial, const Expr &rest, const Expr &done) {
        if (lowering_.target.has_gpu_feature()) {
            Halide::RDom r = domain(1);
            r.where(lane_ < rest);
            update(partial, r, lane_, Halide::clamp(done + lane_, 0, space_.columns - 1) + r[0]);
            return;
        }
        Halide::RDom r = domain(rest);
        update(partial, r, r[0], done + r[0]);
    }

    Halide::Func fold_vectors(const Halide::Func &partial) {
        std::vector<Partial> vectors;
        for (int first = 0; first < space_.lanes; first += fold_lanes) {
            vectors.push_back(components(partial(with(lane_ + first)), size_));
        }
        Halide::Func lane("lane_" + std::to_string(stages_.lane.size()));
        assign(lane(with(lane_)), group_.tree(vectors));
        lane.bound(lane_, 0, fold_lanes);
        return lane;
    }

    Halide::Func fold(const Halide::Func &lane, int lanes) {
        std::vector<Partial> parts;
        for (int i = 0; i < lanes; i++) {
            parts.push_back(components(lane(with(i)), size_));
        }
        Halide::Func result = make("fold", stages_.fold);
        assign(result(space_.outer), group_.tree(parts));
        return result;
    }

    Lowering &lowering_;
    const ReductionGroup &group_;
    const ReductionSpace &space_;
    LaneStages &stages_;
    int size_;
    Halide::Var lane_{"lane"};
};

} // namespace

Partial terms_where(const Expr &condition, const ReductionGroup &group, const Partial &terms) {
    const Partial identity = group.identity().as_vector();
    Partial chosen = terms;
    size_t first = 0;
    for (const Reduction &reduction : group.reductions()) {
        chosen[first] = Halide::select(condition, terms[first], identity[first]);
        first += size_t(reduction.size());
    }
    return chosen;
}

Halide::Func reduce_lanes(Lowering &lowering, const ReductionGroup &group, const ReductionSpace &space, LaneStages &stages) {
    return LaneReduction(lowering, group, space, stages).build();
}

Halide::Func add_partial(Lowering &lowering, const ReductionGroup &group, const ReductionSpace &space, LaneStages &stages) {
    return LaneReduction(lowering, group, space, stages).add_partial();
}

std::vector<const Node *> find_reductions(const Program &program, const Extents &shape, const std::vector<int64_t> &axes) {
    std::vector<const Node *> found;
    for (const Node &node : program.nodes) {
        if (is_reduction(node) && program.type(node.operands[0]).shape == shape && reduced_axes(node) == axes) {
            found.push_back(&node);
        }
    }
    return found;
}

Index split_row(const Expr &row, const Extents &rows, const Values &values) {
    Index index(rows.size());
    Expr rest = row;
    for (size_t i = rows.size(); i-- > 0;) {
        index[i] = i == 0 ? rest : rest % values.extent(rows[i]);
        rest = rest / values.extent(rows[i]);
    }
    return index;
}

int choose_lanes(const Extent &columns) {
    if (!columns.is_static() || columns.value() >= 2 * most_lanes) {
        return most_lanes;
    }
    return int(std::clamp<int64_t>(columns.value(), 1, fold_lanes));
}

} // namespace scalide

#include "lower/rows/reduction.h"
#include "lower/values/outputs.h"
#include <algorithm>
#include <numeric>

// tiled: elementwise operators on arrays of one shape whose values are needed in several forms: unchanged, transposed, or reduced over all
// axes. Each element is computed once, into a tile, and all forms read the tile. A tile that exceeds the array repeats its last elements.
// So only reductions that may count an element twice are allowed (max, min, and, or).
//
// The outputs have the axes of the shape in some order. A rank-0 output comes last.
namespace scalide {
namespace {
using Halide::Expr;

/// Four 8-bit elements are one word, four f32 are 16 bytes.
constexpr int most_together = 4;

/// A result as a permuted value of the shape: axis i of the result is axis `order[i]` of the value.
struct Form {
    ValueId value;
    std::vector<int64_t> order;
};

Form form_of(const Program &program, const std::vector<int> &makers, ValueId result) {
    Form form{result, std::vector<int64_t>(program.type(result).shape.size())};
    std::iota(form.order.begin(), form.order.end(), 0);
    while (makers[form.value] >= 0) {
        const Node &node = program.nodes[makers[form.value]];
        if (node.op == "transpose") {
            const std::vector<int64_t> permutation = to_integers(node.attributes.at("permutation"));
            for (int64_t &axis : form.order) axis = permutation[axis];
        } else if (node.op != "reshape" || program.type(node.operands[0]) != program.type(node.results[0])) {
            break;
        }
        form.value = node.operands[0];
    }
    return form;
}

class TiledLowering {
public:
    explicit TiledLowering(Lowering &lowering)
        : lowering_(lowering), program_(lowering.kernel.program), stages_(lowering.kernel.stages.emplace<TiledStages>()),
          group_(reductions_of(program_)), terms_(group_.reductions().empty() ? 0 : int(group_.identity().size())) {
        const std::vector<int> makers = producers(program_);
        for (const Result &result : program_.results) {
            internal_check(result.argument < 0, "a tiled kernel overwrites no argument");
            forms_.push_back(form_of(program_, makers, result.value));
            if (!program_.type(result.value).is_scalar()) shape_ = program_.type(forms_.back().value).shape;
        }
        internal_check(shape_.size() <= 3, "a tiled kernel has at most three axes");
        vars_ = axis_vars(int(shape_.size()));
        place_tiles();
    }

    void lower() {
        std::vector<Expr> words = make_words();
        if (!group_.reductions().empty()) {
            const std::vector<Expr> terms = group_.terms(lowering_.values, clamped(), 0);
            words.insert(words.end(), terms.begin(), terms.end());
        }
        size_ = int(words.size());
        assign(tile_(buffer_order(vars_)), Halide::Tuple(words));
        stages_.tile = tile_;
        add_outputs();
        if (group_.reductions().empty()) return;
        reduce_tiles();
        add_scalar_output();
    }

private:
    static ReductionGroup reductions_of(const Program &program) {
        std::vector<Reduction> reductions;
        for (const Node &node : program.nodes)
            if (is_reduction(node)) reductions.emplace_back(program, node);
        return ReductionGroup(reductions);
    }

    bool is_array(size_t result) const { return !program_.type(program_.results[result].value).is_scalar(); }

    /// The axis of the shape that is buffer dimension `across`.
    size_t across_axis() const { return shape_.size() - 1 - size_t(across_); }

    void place_tiles() {
        across_ = shape_.size() > 1 ? 1 : 0;
        int bytes = 4 * terms_;
        for (size_t r = 0; r < forms_.size(); r++) {
            if (!is_array(r)) continue;
            bytes += size_of(program_.type(forms_[r].value).dtype);
            const auto innermost = int(shape_.size()) - 1 - int(forms_[r].order.back());
            if (innermost > 0) across_ = innermost;
        }
        side_ = bytes * most_lanes * (most_lanes + 4) <= lowering_.budgets.tile_bytes ? most_lanes : most_lanes / 2;
        stages_.across = across_;
        stages_.side = side_;
        stages_.together_x = together(shape_.size() - 1);
        stages_.together_y = together(across_axis());
    }

    int together(size_t axis) const {
        const Expr rest = Halide::Internal::simplify(lowering_.values.extent(shape_[axis]) % most_together);
        return lowering_.target.has_gpu_feature() && Halide::Internal::is_const_zero(rest) ? most_together : 1;
    }

    /// The position of the tile's element. Positions beyond the array are mapped to its last elements.
    Index clamped() const {
        Index index(vars_.begin(), vars_.end());
        for (const size_t axis : {shape_.size() - 1, across_axis()}) {
            const int count = together(axis);
            const Expr last = Halide::Internal::simplify(lowering_.values.extent(shape_[axis]) / count - 1), place = vars_[axis];
            index[axis] = count == 1 ? Halide::clamp(place, 0, last) : Halide::clamp(place / count, 0, last) * count + place % count;
        }
        return index;
    }

    std::vector<Expr> make_words() {
        std::vector<Expr> words;
        for (size_t r = 0; r < forms_.size(); r++) {
            if (!is_array(r)) continue;
            const auto [place, is_new] = component_.emplace(forms_[r].value, int(words.size()));
            const Dtype dtype = program_.type(forms_[r].value).dtype;
            if (is_new) words.push_back(to_word(dtype, lowering_.values.at(forms_[r].value, clamped())));
        }
        return words;
    }

    Expr word(const Index &index, int component) const { return components(tile_(buffer_order(index)), size_)[component]; }

    /// Adds one output for the results of each axis order.
    void add_outputs() {
        std::map<std::vector<int64_t>, std::vector<int>> by_order;
        for (size_t r = 0; r < forms_.size(); r++)
            if (is_array(r)) by_order[forms_[r].order].push_back(int(r));
        for (const auto &[order, results] : by_order) {
            for (const int r : results) {
                const Form &form = forms_[r];
                lowering_.values.bind(program_.results[r].value, [this, form](const Index &index) {
                    Index place(index.size());
                    for (size_t i = 0; i < index.size(); i++) place[form.order[i]] = index[i];
                    return from_word(program_.type(form.value).dtype, word(place, component_.at(form.value)));
                });
            }
            std::vector<Halide::Var> vars;
            for (const int64_t axis : order) vars.push_back(vars_[axis]);
            add_output(lowering_, results, vars);
        }
    }

    /// Returns the number of tiles along each outer argument of the tile's reductions.
    std::vector<Expr> tile_counts() const {
        const auto count = [&](size_t axis, int side) {
            return Halide::Internal::simplify((lowering_.values.extent(shape_[axis]) + side - 1) / side);
        };
        if (across_ == 0) return {count(0, side_ * side_)};
        std::vector<Expr> counts = {count(shape_.size() - 1, side_), count(across_axis(), side_)};
        for (const size_t axis : other_axes()) counts.push_back(lowering_.values.extent(shape_[axis]));
        return counts;
    }

    /// Returns the axes that tiles do not cover, last axis first.
    std::vector<size_t> other_axes() const {
        std::vector<size_t> axes;
        for (size_t axis = shape_.size(); axis-- > 0;)
            if (axis + 1 != shape_.size() && axis != across_axis()) axes.push_back(axis);
        return axes;
    }

    ReductionSpace space_of_tile() const {
        const Halide::Var tile_x("tile_x"), tile_y("tile_y");
        ReductionSpace space{{tile_x}, side_, side_, {Halide::Range(0, side_)}, {}};
        if (across_ > 0) space.outer.push_back(tile_y);
        for (const size_t axis : other_axes()) space.outer.push_back(vars_[axis]);
        space.at = [=, this](const Index &steps, const Expr &column) {
            Index index(vars_.begin(), vars_.end());
            if (across_ == 0) return Index{(tile_x * side_ + steps[0]) * side_ + column};
            index.back() = tile_x * side_ + column;
            index[across_axis()] = tile_y * side_ + steps[0];
            return index;
        };
        space.terms = [this](const Index &index) {
            std::vector<Expr> all = components(tile_(buffer_order(index)), size_);
            return std::vector<Expr>(all.end() - terms_, all.end());
        };
        return space;
    }

    void reduce_tiles() {
        const Halide::Func fold = reduce_lanes(lowering_, group_, space_of_tile(), stages_.of_tile);
        const std::vector<Expr> counts = tile_counts();
        Expr all = 1;
        for (const Expr &count : counts) all = Halide::Internal::simplify(all * count);
        ReductionSpace space{{}, all, most_lanes, {}, {}};
        space.at = [](const Index &, const Expr &column) { return Index{column}; };
        space.terms = [=, this](const Index &index) {
            std::vector<Expr> place;
            Expr rest = index[0];
            for (const Expr &count : counts) {
                place.push_back(rest % count);
                rest = rest / count;
            }
            return components(fold(place), terms_);
        };
        group_.bind(lowering_.values, reduce_lanes(lowering_, group_, space, stages_.whole.lanes));
    }

    void add_scalar_output() {
        std::vector<int> results;
        for (size_t r = 0; r < forms_.size(); r++)
            if (!is_array(r)) results.push_back(int(r));
        add_output(lowering_, results, {});
    }

    Lowering &lowering_;
    const Program &program_;
    TiledStages &stages_;
    ReductionGroup group_;
    int terms_, size_ = 0, across_ = 0, side_ = 0;
    std::vector<Form> forms_; ///< by result
    Extents shape_;
    std::vector<Halide::Var> vars_;
    std::map<ValueId, int> component_; ///< component of the tile
    Halide::Func tile_{"tile"};
};

} // namespace

void lower_tiled(Lowering &lowering) { TiledLowering(lowering).lower(); }

} // namespace scalide

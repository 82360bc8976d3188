#include "lower/formats/formats.h"
#include "lower/halide/amx_tiles.h"
#include "lower/rows/blocked_sum.h"
#include "lower/values/movement.h"
#include "lower/values/panels.h"
#include "lower/values/source_dtype.h"
#include "lower/windows/convolution_form.h"
#include "lower/windows/window.h"
#include "lower/windows/window_places.h"
#include <algorithm>
#include <numeric>

// Convolutions as a direct loop nest. A register tile spans two axes of the result. Vector lanes are `width` adjacent elements along one
// axis: features, or positions of an image if features are not contiguous. The tile's rows run along the other axis. Elements beyond the
// result are computed but never stored.
//
// If the images are dilated by d (transposed convolutions, gradients of strided ones), an element of the result meets every d-th position
// of the window. On CPUs, the sum visits these positions alone. The first one depends on the element, so this needs an axis along which
// neither lanes nor rows of a tile run. ms of 16 x 14 x 14 x 128 by 4 x 4 x 128 x 64 with strides of 2 (EPYC Zen 4, two threads,
// others busy, 2026-11-29): 23.5 over all positions, 7.9 so; with 3 x 3 positions 13.9 and 2.7.
//
// Where a CPU multiplies pairs of bf16 faster than f32, pairs are adjacent input features. The images are stored in bf16 with the input
// features innermost, and the weights in pairs, as the panels of a matmul are. By tiles of AMX, 32 rows along one axis of the result are
// 32 rows of the images at a constant distance, for each window position.
namespace scalide {
using Halide::Expr;
using Halide::Func;
using Halide::Var;

namespace {

constexpr int64_t fewest_rows = 4; ///< a spatial axis that is shorter leaves the rows of a tile to a longer axis

std::vector<Var> numbered_vars(const std::string &name, size_t count) {
    std::vector<Var> vars;
    for (size_t i = 0; i < count; i++) {
        vars.emplace_back(name + std::to_string(i));
    }
    return vars;
}

/// Returns the lanes of a register tile: two vectors, or one if two vectors would exceed a short axis by one vector.
int choose_width(const Extent &extent, int lanes) {
    const int64_t vectors = extent.is_static() ? (extent.value() + lanes - 1) / lanes : 2;
    return vectors <= 3 && vectors % 2 == 1 ? lanes : 2 * lanes;
}

class ConvolutionLowering {
public:
    ConvolutionLowering(Lowering &lowering, const Node &node)
        : kernel_(lowering.kernel), stages_(lowering.kernel.stages.emplace<ConvolutionStages>()), values_(lowering.values), node_(node),
          lhs_type_(type(node.operands[0])), rhs_type_(type(node.operands[1])), out_type_(type(node.results[0])),
          convolution_(convolution(node.attributes, rhs_type_.shape)),
          sum_type_(is_integer(out_type_.dtype) ? Halide::UInt(32) : storage_type(out_type_.dtype)),
          is_gpu_(lowering.target.has_gpu_feature()), form_(convolution_form(lowering.kernel.program, node, lowering.budgets)),
          group_(form_.group), lane_axis_(choose_lane_axis(convolution_, out_type_.shape)), tile_axis_(choose_tile_axis()),
          width_(form_.in_tiles ? amx_side : choose_width(lane_extent(), lowering.target.natural_vector_size<float>())),
          is_in_panels_(panels_of(lowering.kernel.program)) {}

    void lower() {
        if (!reads_lhs()) {
            pack_lhs();
        }
        if (is_in_panels_) {
            internal_check(has_panels(), "window: weights in panels need features as lanes");
        } else if (has_panels()) {
            pack_panels();
        } else if (!is_argument(node_.operands[1])) {
            pack_rhs();
        }
        form_.in_tiles ? sum_tiles() : sum();
        bind();
        describe();
    }

private:
    const Type &type(ValueId value) const { return values_.program().type(value); }
    int64_t features_axis() const { return convolution_.out_spec[1]; }
    bool has_panels() const { return lane_axis_ == features_axis(); }
    size_t spatial_rank() const { return convolution_.spatial.size(); }

    /// If lanes are positions, tiles run along features. If lanes are features, tiles run along the last spatial axis, or along a longer
    /// axis if that one is short.
    int64_t choose_tile_axis() const {
        if (form_.in_tiles) return form_.rows_axis;
        if (!has_panels()) {
            return features_axis();
        }
        const Extent &images = out_type_.shape[convolution_.out_spec[0]];
        const bool has_gaps = std::ranges::any_of(convolution_.spatial, [](const WindowAxis &axis) { return axis.base_dilation > 1; });
        if (!is_gpu_ && has_gaps && images.is_static() && images.value() >= fewest_rows) return convolution_.out_spec[0];
        std::vector<int64_t> axes(convolution_.out_spec.begin() + 2, convolution_.out_spec.end());
        std::ranges::reverse(axes);
        axes.push_back(convolution_.out_spec[0]);
        int64_t best = axes[0];
        for (int64_t axis : axes) {
            if (!is_at_least(out_type_.shape[best], fewest_rows) && is_longer(out_type_.shape[axis], out_type_.shape[best])) {
                best = axis;
            }
        }
        return best;
    }

    bool is_argument(ValueId value) const {
        return values_.producer(value) == nullptr && (is_integer(type(value).dtype) || type(value).dtype == out_type_.dtype);
    }

    /// True if the argument is read directly, because nothing needs decoding, padding or clamping.
    bool reads_lhs() const {
        const bool stays_inside = std::ranges::all_of(convolution_.spatial, has_elements_only);
        return group_ == 1 && has_panels() && stays_inside && is_argument(node_.operands[0]);
    }

    /// True if the sum skips the gaps between the elements of spatial axis `i`. The factors of the window positions must have an inverse.
    bool skips_gaps(size_t i) const {
        const int64_t axis = convolution_.out_spec[i + 2];
        const WindowAxis &window = convolution_.spatial[i];
        return !is_gpu_ && window.base_dilation > 1 && axis != lane_axis_ && axis != tile_axis_ &&
               std::gcd(window.base_dilation, window.window_dilation) == 1;
    }

    /// Returns the first window position p of element `out` that meets an element: out * stride + p * window_dilation - low is a multiple
    /// of the dilation.
    Expr first_position(size_t i, const Expr &out) const {
        const WindowAxis &axis = convolution_.spatial[i];
        int64_t inverse = 1;
        while (inverse * axis.window_dilation % axis.base_dilation != 1) inverse++;
        return (values_.extent(axis.low) - out * int(axis.stride)) * int(inverse) % int(axis.base_dilation);
    }

    /// Maps position p of spatial axis `i` to element (p - low) / dilation, if there is one. Without gaps, p is an element.
    PaddedAxis padded(size_t i, const Expr &p) const {
        const WindowAxis &axis = convolution_.spatial[i];
        if (skips_gaps(i)) return unpad(p, 0, 1, values_.extent(lhs_type_.shape[convolution_.lhs_spec[i + 2]]));
        return unpad(p, values_.extent(axis.low), int(axis.base_dilation), values_.extent(lhs_type_.shape[convolution_.lhs_spec[i + 2]]));
    }

    void pack_lhs() {
        const std::vector<Var> vars = numbered_vars("axis", lhs_type_.shape.size());
        Index index(vars.begin(), vars.end());
        WindowPlaces::Place place;
        for (size_t i = 0; i < spatial_rank(); i++) {
            const int64_t axis = convolution_.lhs_spec[i + 2];
            const PaddedAxis moved = padded(i, index[axis]);
            index[axis] = moved.index;
            place.inside = place.inside.defined() ? place.inside && moved.inside : moved.inside;
            place.extents.push_back(values_.extent(lhs_type_.shape[axis]));
        }
        const int64_t images = convolution_.lhs_spec[0];
        if (lane_axis_ == convolution_.out_spec[0] || (form_.in_tiles && tile_axis_ == convolution_.out_spec[0])) {
            index[images] = Halide::min(index[images], values_.extent(lhs_type_.shape[images]) - 1);
        }
        lhs_(packed_order(vars)) = packed(place.choose(values_.at(node_.operands[0], index), make_constant(lhs_type_.dtype, 0)));
        stages_.lhs = lhs_;
    }

    /// Returns an index of the packed images. Pairs of input features are adjacent.
    template<typename T>
    std::vector<T> packed_order(std::vector<T> index) const {
        const auto features = index.begin() + convolution_.lhs_spec[1];
        if (group_ > 1) std::rotate(features, features + 1, index.end());
        return buffer_order(index);
    }

    /// Returns an element as it is multiplied.
    Expr packed(const Expr &value) const { return group_ > 1 ? exact_bf16(value) : value; }

    /// Returns the images at position `at` (batch, feature, spatial) of the padded and dilated array.
    Expr lhs_at(const Index &at) {
        Index index(at.size());
        for (size_t i = 0; i < at.size(); i++) {
            index[convolution_.lhs_spec[i]] = at[i];
        }
        if (!reads_lhs()) {
            return lhs_(packed_order(index));
        }
        for (size_t i = 0; i < spatial_rank(); i++) {
            Expr &place = index[convolution_.lhs_spec[i + 2]];
            place = place - values_.extent(convolution_.spatial[i].low);
        }
        return values_.at(node_.operands[0], index);
    }

    /// Returns an index of rhs from output feature, input feature and window positions.
    Index rhs_index(const Expr &feature, const Expr &input, const Index &places) const {
        Index index(rhs_type_.shape.size());
        index[convolution_.rhs_spec[0]] = feature;
        index[convolution_.rhs_spec[1]] = input;
        for (size_t i = 0; i < places.size(); i++) {
            index[convolution_.rhs_spec[i + 2]] = places[i];
        }
        return index;
    }

    void pack_panels() {
        const Var input("input");
        const std::vector<Var> places = numbered_vars("place", spatial_rank());
        const Expr feature = within_lanes(panel_ * width_ + column_);
        const Index at = rhs_index(feature, group_ > 1 ? group_ * input + item_ : Expr(input), {places.begin(), places.end()});
        rhs_(panel_index<Var>(item_, column_, input, places, panel_)) = packed(values_.at(node_.operands[1], at));
        stages_.rhs = rhs_;
    }

    /// Lanes beyond the axis repeat the last lane.
    Expr within_lanes(const Expr &lane) const {
        return lane_extent().divide(width_) ? lane : Halide::min(lane, values_.extent(lane_extent()) - 1);
    }

    /// Returns an index of the packed weights. `item` is the place in a group of input features.
    template<typename T>
    std::vector<T> panel_index(const T &item, const T &column, const T &input, const std::vector<T> &places, const T &panel) const {
        std::vector<T> index = {column, input};
        if (group_ > 1) index.insert(index.begin(), item);
        index.insert(index.end(), places.rbegin(), places.rend());
        index.push_back(panel);
        return index;
    }

    void pack_rhs() {
        const std::vector<Var> vars = numbered_vars("axis", rhs_type_.shape.size());
        rhs_(buffer_order(vars)) = values_.at(node_.operands[1], {vars.begin(), vars.end()});
        stages_.rhs = rhs_;
    }

    /// Returns an element of the panels as it is in memory.
    Expr word_of_panels(const Expr &item, const Expr &column, const Expr &input, const Index &places) {
        if (!is_in_panels_) return rhs_(panel_index<Expr>(item, column, input, places, panel_));
        Index index = {panel_};
        index.insert(index.end(), places.begin(), places.end());
        index.insert(index.end(), {input, column, item});
        return element_of_panels(values_, node_.operands[1], index);
    }

    /// `input`: an input feature, or its group, in which `item` is its place.
    Expr rhs_at(const Expr &feature, const Expr &item, const Expr &input, const Index &places) {
        if (has_panels()) {
            const Expr word = word_of_panels(item, column_, input, places);
            return is_in_panels_ && group_ > 1 ? Halide::reinterpret(Halide::BFloat(16), word) : word;
        }
        const Index index = rhs_index(feature, input, places);
        return is_argument(node_.operands[1]) ? values_.at(node_.operands[1], index) : Expr(rhs_(buffer_order(index)));
    }

    const Extent &lane_extent() const { return out_type_.shape[lane_axis_]; }

    /// Returns the result's axes that are neither lanes nor tile rows, last axis first.
    std::vector<int64_t> other_axes() const {
        std::vector<int64_t> axes;
        for (int64_t axis = int64_t(out_type_.shape.size()) - 1; axis >= 0; axis--) {
            if (axis != lane_axis_ && axis != tile_axis_) {
                axes.push_back(axis);
            }
        }
        return axes;
    }

    template<typename T>
    std::vector<T> product_index(const T &column, const T &row, const T &panel, const std::vector<T> &others) const {
        std::vector<T> index = {column, row, panel};
        index.insert(index.end(), others.begin(), others.end());
        return index;
    }

    /// Returns the group of a feature. If panels do not cross groups, it is computed once for a whole panel.
    Expr group_of(const Expr &feature) const {
        const int64_t groups = convolution_.feature_groups * convolution_.batch_groups;
        const Extent features = *out_type_.shape[features_axis()].divide(groups);
        const bool one_a_panel = has_panels() && features.divide(width_);
        const Expr here = has_panels() ? within_lanes(feature) : feature;
        return (one_a_panel ? Expr(panel_ * width_) : here) / values_.extent(features);
    }

    void sum() {
        const std::vector<int64_t> others = other_axes();
        const std::vector<Var> vars = numbered_vars("other", others.size());
        Index out(out_type_.shape.size()); // positions of a tile beyond the axis repeat the last row
        out[lane_axis_] = panel_ * width_ + column_;
        out[tile_axis_] = Halide::min(row_, values_.extent(out_type_.shape[tile_axis_]) - 1);
        for (size_t i = 0; i < others.size(); i++) {
            out[others[i]] = vars[i];
        }
        std::vector<SumAxis> axes = {sum_axis(*rhs_type_.shape[convolution_.rhs_spec[1]].divide(group_), kernel_)};
        if (group_ > 1) axes.insert(axes.begin(), {group_, double(group_)});
        for (size_t i = spatial_rank(); i-- > 0;) {
            axes.push_back(window_axis(i, out));
        }
        const AddTerm add = [&](const Expr &sum, const std::vector<Expr> &at) {
            return group_ > 1 ? sum + term(out, at[0], {at.begin() + 1, at.end()}) : sum + term(out, 0, at);
        };
        const std::vector<Var> args = product_index<Var>(column_, row_, panel_, vars);
        const Expr zero = Halide::cast(sum_type_, 0);
        stages_.product = is_gpu_ ? sum_in_one_loop(args, axes, zero, add) : sum_in_blocks(args, axes, zero, add);
        product_ = stages_.product.value;
    }

    /// Sums by tiles of 32 rows. A step is 32 input features of one window position.
    void sum_tiles() {
        const std::vector<int64_t> others = other_axes();
        const std::vector<Var> vars = numbered_vars("other", others.size());
        Index out(out_type_.shape.size());
        for (size_t i = 0; i < others.size(); i++) out[others[i]] = vars[i];
        const int step_terms = amx_step_groups * group_;
        const Expr steps_of_place = values_.extent(*rhs_type_.shape[convolution_.rhs_spec[1]].divide(step_terms));
        Expr steps = steps_of_place;
        for (const WindowAxis &axis : convolution_.spatial) steps = steps * values_.extent(axis.window);
        SumTiles tiles;
        tiles.step_terms = step_terms;
        tiles.place = amx_place;
        tiles.define = [=, this](const Func &product, const std::vector<Var> &args, const Expr &first, const Expr &count) {
            std::vector<Expr> place = {tile_};
            place.insert(place.end(), args.begin() + 2, args.end());
            define_amx_product(product, place, sum_type_, count,
                               [&](const Expr &each) { return operands_of_step(out, first + each, steps_of_place); });
        };
        steps = Halide::Internal::simplify(steps);
        const auto known = Halide::Internal::as_const_int(steps);
        const double most = known ? double(*known) : 1e9;
        stages_.product =
            sum_in_tiles(product_index<Var>(column_, row_, panel_, vars), {steps, most}, Halide::cast(sum_type_, 0), tiles, {});
        product_ = stages_.product.value;
    }

    /// Returns the operands of a step for the rows from the first one of a tile.
    AmxOperands operands_of_step(Index out, const Expr &step, const Expr &steps_of_place) {
        const Expr group = step % steps_of_place * amx_step_groups;
        Expr position = step / steps_of_place;
        Index places(spatial_rank());
        for (size_t i = spatial_rank(); i-- > 0;) {
            const Expr window = values_.extent(convolution_.spatial[i].window);
            places[i] = i == 0 ? position : position % window;
            position = position / window;
        }
        const auto lhs = [&](int row, int item) {
            out[tile_axis_] = tile_ * amx_side + row;
            Index from = {out[convolution_.out_spec[0]], group * group_ + item};
            for (size_t i = 0; i < spatial_rank(); i++) from.push_back(image_position(i, out, places[i]));
            return lhs_at(from);
        };
        const auto rhs = [&](int item, int column, int more) { return word_of_panels(item, column, group + more, places); };
        const Halide::Type bf16 = Halide::BFloat(16);
        return {{bf16, lhs(0, 0), lhs(1, 0), lhs(amx_side / 2, 0), lhs(amx_side - 1, amx_step_groups * group_ - 1)},
                {bf16, rhs(0, 0, 0), rhs(0, 0, 1), rhs(0, amx_side / 2, 0), rhs(group_ - 1, amx_side - 1, amx_step_groups - 1)}};
    }

    /// Returns where the packed images have what the element at `out` meets at a window position of spatial axis `i`.
    Expr image_position(size_t i, const Index &out, const Expr &position) const {
        const WindowAxis &axis = convolution_.spatial[i];
        const Expr place = out[convolution_.out_spec[i + 2]] * int(axis.stride) + position * int(axis.window_dilation);
        return skips_gaps(i) ? (place - values_.extent(axis.low)) / int(axis.base_dilation) : place;
    }

    /// Returns the positions of the window along spatial axis `i` over which the sum of the element at `out` runs.
    SumAxis window_axis(size_t i, const Index &out) const {
        const Extent &window = convolution_.spatial[i].window;
        SumAxis axis = sum_axis(window, kernel_);
        if (!skips_gaps(i)) return axis;
        const int dilation = int(convolution_.spatial[i].base_dilation);
        const bool divides = window.divide(dilation).has_value();
        const Expr first = first_position(i, out[convolution_.out_spec[i + 2]]), extent = axis.extent;
        axis.extent = Halide::Internal::simplify((extent + (dilation - 1)) / dilation);
        if (!divides) axis.has_term = [=](const Expr &at) { return first + at * dilation < extent; };
        return axis;
    }

    /// `at`: input feature, or its group, in which `item` is its place; then window positions, last axis first.
    Expr term(const Index &out, const Expr &item, const std::vector<Expr> &at) {
        const Expr feature = out[features_axis()];
        Expr image = out[convolution_.out_spec[0]], input = group_ > 1 ? at[0] * group_ + item : at[0];
        if (convolution_.feature_groups > 1) {
            input = group_of(feature) * values_.extent(rhs_type_.shape[convolution_.rhs_spec[1]]) + input;
        }
        if (convolution_.batch_groups > 1) {
            image = group_of(feature) * values_.extent(out_type_.shape[convolution_.out_spec[0]]) + image;
        }
        Index places(spatial_rank()), from = {image, input};
        for (size_t i = 0; i < spatial_rank(); i++) {
            const WindowAxis &axis = convolution_.spatial[i];
            const Expr here = out[convolution_.out_spec[i + 2]], position = at[spatial_rank() - i];
            const bool skips = skips_gaps(i);
            // A position without a term is never read, but Halide must see that it is a position.
            places[i] = skips ? Halide::min(first_position(i, here) + position * int(axis.base_dilation), values_.extent(axis.window) - 1)
                              : position;
            from.push_back(image_position(i, out, places[i]));
        }
        return Halide::cast(sum_type_, lhs_at(from)) * Halide::cast(sum_type_, rhs_at(feature, item, at[0], places));
    }

    void bind() {
        values_.bind(node_.results[0], [this_ = *this](const Index &index) -> Expr {
            std::vector<Expr> others;
            for (int64_t axis : this_.other_axes()) {
                others.push_back(index[axis]);
            }
            const Expr lane = index[this_.lane_axis_];
            const std::vector<Expr> place =
                this_.product_index<Expr>(lane % this_.width_, index[this_.tile_axis_], lane / this_.width_, others);
            return Halide::cast(storage_type(this_.out_type_.dtype), this_.product_(place));
        });
    }

    void describe() {
        const int last = int(out_type_.shape.size()) - 1;
        stages_.width = width_;
        stages_.group = group_;
        stages_.in_tiles = form_.in_tiles;
        stages_.has_panels = has_panels();
        stages_.lane_dimension = last - int(lane_axis_);
        stages_.tile_dimension = last - int(tile_axis_);
        stages_.image_dimension = last - int(convolution_.out_spec[0]);
        stages_.lanes = lane_extent();
        stages_.tile = out_type_.shape[tile_axis_];
        stages_.terms = rhs_type_.shape[convolution_.rhs_spec[1]];
        for (const WindowAxis &axis : convolution_.spatial) {
            stages_.terms = stages_.terms * axis.window;
        }
    }

    const LoweredKernel &kernel_;
    ConvolutionStages &stages_;
    Values &values_;
    const Node &node_;
    const Type &lhs_type_, &rhs_type_, &out_type_;
    const Convolution convolution_;
    const Halide::Type sum_type_; ///< of the accumulators. Integers wrap around: they are u32, because Halide's i32 must not overflow
    const bool is_gpu_;
    const ConvolutionForm form_;
    const int group_;
    const int64_t lane_axis_, tile_axis_;
    const int width_;
    const bool is_in_panels_; ///< an argument has the weights in panels (lower/values/panels.h)
    Func lhs_{"lhs"}, rhs_{"rhs"}, product_;
    Var item_{"item"}, column_{"column"}, row_{"row"}, panel_{"panel"}, tile_{"tile"};
};

} // namespace

std::optional<PanelLayout> convolution_panels(const Program &kernel, const Halide::Target &target, const Budgets &budgets) {
    const auto node = std::ranges::find(kernel.nodes, "conv_general_dilated", &Node::op);
    if (node == kernel.nodes.end()) return {};
    const Type &weights = kernel.type(node->operands[1]);
    const Extents &shape = kernel.type(node->results[0]).shape;
    const Convolution convolution = scalide::convolution(node->attributes, weights.shape);
    if (choose_lane_axis(convolution, shape) != convolution.out_spec[1]) return {};
    const ConvolutionForm form = convolution_form(kernel, *node, budgets);
    const int width = choose_width(shape[convolution.out_spec[1]], target.natural_vector_size<float>());
    PanelLayout layout{form.group > 1 ? Dtype::bf16 : weights.dtype,
                       form.in_tiles ? amx_side : width,
                       form.group,
                       convolution.rhs_spec[0],
                       {convolution.rhs_spec.begin() + 2, convolution.rhs_spec.end()},
                       0};
    layout.axes.push_back(convolution.rhs_spec[1]);
    return layout;
}

void lower_convolution(Lowering &lowering, const Node &node) { ConvolutionLowering(lowering, node).lower(); }

} // namespace scalide

#include "lower/values/windows.h"
#include <algorithm>

namespace scalide {
using Halide::Expr;

namespace {

/// Names of attributes, which differ between gather and scatter.
struct Names {
    const char *window, *collapsed, *map, *index_batching;
};
constexpr Names of_gather{"offset_dims", "collapsed_slice_dims", "start_index_map", "start_indices_batching_dims"};
constexpr Names of_scatter{"update_window_dims", "inserted_window_dims", "scatter_dims_to_operand_dims", "scatter_indices_batching_dims"};

const Names &names_of(const Node &node) { return node.op == "gather" ? of_gather : of_scatter; }

std::vector<int64_t> list(const Node &node, const char *name) {
    const auto found = node.attributes.find(name);
    return found == node.attributes.end() ? std::vector<int64_t>() : to_integers(found->second);
}

bool contains(const std::vector<int64_t> &axes, int64_t axis) { return std::ranges::find(axes, axis) != axes.end(); }

} // namespace

Windows::Windows(Values &values, const Node &node)
    : values_(values), node_(node), windows_(node.op == "gather" ? node.results[0] : node.operands[2]), scatters_(node.op != "gather"),
      window_dims_(list(node, names_of(node).window)), map_(list(node, names_of(node).map)), batching_(list(node, "operand_batching_dims")),
      index_batching_(list(node, names_of(node).index_batching)) {
    const std::vector<int64_t> collapsed = list(node, names_of(node).collapsed);
    size_t next = 0;
    for (int64_t axis = 0; axis < int64_t(array_shape().size()); axis++) {
        const bool is_hidden = contains(collapsed, axis) || contains(batching_, axis);
        window_of_.push_back(is_hidden ? -1 : int(window_dims_.at(next++)));
    }
}

bool Windows::is_window_axis(size_t axis) const { return contains(window_dims_, int64_t(axis)); }

Extent Windows::size(size_t axis) const { return window_of_[axis] < 0 ? Extent(1) : shape()[size_t(window_of_[axis])]; }

Index Windows::inside_of_indices(Index batch) const {
    constexpr int most_lanes = 64;
    const Extents &indices = values_.program().type(node_.operands[1]).shape;
    for (const int64_t axis : index_batching_) {
        const Extent &extent = indices[size_t(axis)];
        if (!extent.divide(most_lanes)) batch[size_t(axis)] = Halide::min(batch[size_t(axis)], values_.extent(extent) - 1);
    }
    return batch;
}

WindowPlace Windows::place(const Index &at) const {
    WindowPlace place{Index(array_shape().size(), Expr(0)), Halide::Internal::const_true(), {}};
    Index batch;
    for (size_t i = 0; i < at.size(); i++) {
        if (!is_window_axis(i)) {
            batch.push_back(at[i]);
        }
    }
    for (size_t axis = 0; axis < window_of_.size(); axis++) {
        if (window_of_[axis] >= 0) {
            place.index[axis] = at[size_t(window_of_[axis])];
        }
    }
    for (size_t i = 0; i < batching_.size(); i++) {
        place.index[size_t(batching_[i])] = batch[size_t(index_batching_[i])];
    }
    const Index at_index = scatters_ ? inside_of_indices(batch) : batch;
    const bool drops = node_.attributes.at("mode").word == "fill_or_drop";
    for (size_t k = 0; k < map_.size(); k++) {
        const size_t axis = size_t(map_[k]);
        Index vector = at_index;
        vector.push_back(int(k));
        const Expr start = values_.at(node_.operands[1], vector), last = values_.extent(array_shape()[axis] - size(axis));
        place.index[axis] = Halide::clamp(start, 0, last) + place.index[axis];
        place.room.push_back(Halide::Internal::simplify(last + 1));
        if (drops) {
            place.inside = place.inside && start >= 0 && start <= last;
        }
    }
    return place;
}

std::vector<int> Windows::whole_axes() const {
    std::vector<int> whole(shape().size(), -1);
    for (size_t axis = 0; axis < window_of_.size(); axis++) {
        const bool is_whole = window_of_[axis] >= 0 && !contains(map_, int64_t(axis)) && size(axis) == array_shape()[axis];
        if (is_whole) {
            whole[size_t(window_of_[axis])] = int(axis);
        }
    }
    std::vector<size_t> batch;
    for (size_t i = 0; i < shape().size(); i++) {
        if (!is_window_axis(i)) {
            batch.push_back(i);
        }
    }
    for (size_t i = 0; i < batching_.size(); i++) {
        whole[batch[size_t(index_batching_[i])]] = int(batching_[i]);
    }
    return whole;
}

} // namespace scalide

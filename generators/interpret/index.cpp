#include "expr/base_operators.h"
#include "interpret/operation.h"
#include "interpret/strided.h"
#include <algorithm>
#include <array>
#include <cmath>

namespace scalide {

namespace {

/// The positions of windows in an array, one window per index vector, for gather and scatter.
struct Windows {
    /// Offsets of the elements of one window from its first element, in the array and in the array of windows
    std::vector<int64_t> in_array, in_windows;
    std::vector<int64_t> first_in_windows; ///< position of each window in the array of windows
    std::vector<int64_t> first_in_array;   ///< position of each window in the array; -1 if it is out of bounds
};

/// The attributes of gather and scatter that have the same meaning.
struct Names {
    const char *window, *collapsed, *map, *batching, *index_batching, *sizes;
};
constexpr Names of_gather{"offset_dims",           "collapsed_slice_dims",        "start_index_map",
                          "operand_batching_dims", "start_indices_batching_dims", "slice_sizes"};
constexpr Names of_scatter{"update_window_dims",    "inserted_window_dims",          "scatter_dims_to_operand_dims",
                           "operand_batching_dims", "scatter_indices_batching_dims", nullptr};

/// Checks that operand 0 has at least `least` elements along an axis, as the part that is taken from it requires.
void require_elements(const Operation &operation, const char *field, size_t axis, int64_t least) {
    const int64_t extent = operation.operand(0).shape[axis];
    if (extent < least)
        throw UserError({Location(), std::string(operation.op) + "." + field,
                         "the axis must have at least " + std::to_string(least) + (least == 1 ? " element" : " elements"),
                         std::to_string(extent), ""});
}

class WindowFinder {
public:
    /// `windows` is the result of a gather or the updates of a scatter.
    WindowFinder(const Operation &operation, const Names &names, const Array &windows)
        : operation_(operation), array_(operation.operand(0)), indices_(operation.operand(1)), windows_(windows),
          window_dims_(operation.integers(names.window)), map_(operation.integers(names.map)),
          batching_(operation.integers(names.batching)), index_batching_(operation.integers(names.index_batching)),
          strides_(dense(array_.shape).strides) {
        std::vector<int64_t> hidden = operation.integers(names.collapsed);
        hidden.insert(hidden.end(), batching_.begin(), batching_.end());
        kept_ = other_axes(static_cast<int64_t>(array_.shape.size()), hidden);
        sizes_.assign(array_.shape.size(), 1);
        for (size_t i = 0; i < kept_.size(); i++) {
            sizes_[kept_[i]] = windows_.shape[window_dims_[i]];
            require_elements(operation, names.sizes, kept_[i], sizes_[kept_[i]]);
        }
    }

    Windows find() const {
        const std::vector<int64_t> extents = pick(windows_.shape, window_dims_), strides = dense(windows_.shape).strides;
        const std::vector<int64_t> batch = other_axes(static_cast<int64_t>(windows_.shape.size()), window_dims_);
        Windows found{places(extents, {0, pick(strides_, kept_)}), places(extents, {0, pick(strides, window_dims_)}), {}, {}};
        const std::vector<int64_t> batch_extents = pick(windows_.shape, batch);
        found.first_in_windows = places(batch_extents, {0, pick(strides, batch)});
        View view{0, std::vector<int64_t>(batch.size(), 0)};
        for (size_t i = 0; i < batching_.size(); i++) view.strides[index_batching_[i]] = strides_[batching_[i]];
        found.first_in_array = places(batch_extents, view);
        for (size_t n = 0; n < found.first_in_array.size(); n++) found.first_in_array[n] = moved(found.first_in_array[n], n);
        return found;
    }

private:
    /// Returns `place` moved by the index vector with number `vector`. Returns -1 if the mode is `fill_or_drop` and the window is out of
    /// bounds. Other modes clamp the indices.
    int64_t moved(int64_t place, size_t vector) const {
        const bool drops = operation_.attributes.at("mode").word == "fill_or_drop";
        for (size_t k = 0; k < map_.size(); k++) {
            const int64_t last = array_.shape[map_[k]] - sizes_[map_[k]];
            const auto start = static_cast<int64_t>(indices_.data[vector * map_.size() + k]);
            if (last < 0 || (drops && (start < 0 || start > last))) return -1;
            place += std::clamp<int64_t>(start, 0, last) * strides_[map_[k]];
        }
        return place;
    }

    const Operation &operation_;
    const Array &array_, &indices_, &windows_;
    std::vector<int64_t> window_dims_, map_, batching_, index_batching_, strides_;
    std::vector<int64_t> kept_;  ///< axes of the array that remain in a window
    std::vector<int64_t> sizes_; ///< extents of a window, by axis of the array
};

/// Integers have no NaN. A NaN becomes the smallest signed or the largest unsigned number.
double fill_of(const Operation &operation) {
    const double fill = to_number(operation.attributes.at("fill_value"));
    const Dtype dtype = operation.operand(0).dtype;
    if (dtype == Dtype::boolean) return fill != 0;
    if (!std::isnan(fill) || is_float(dtype)) return fill;
    return is_signed(dtype) ? range_of(dtype).smallest : range_of(dtype).largest;
}

/// Returns a view with this shape of a part of operand 0. The operands from number `first` on are its start indices, clamped to the array.
View part_view(const Operation &operation, const char *field, const std::vector<int64_t> &shape, size_t first) {
    const Array &array = operation.operand(0);
    View view = dense(array.shape);
    for (size_t axis = 0; axis < shape.size(); axis++) {
        const auto start = static_cast<int64_t>(operation.operand(first + axis).data[0]);
        require_elements(operation, field, axis, shape[axis]);
        view.offset += std::clamp<int64_t>(start, 0, array.shape[axis] - shape[axis]) * view.strides[axis];
    }
    return view;
}

double replace(std::span<const double> v) { return v[1]; }

/// Returns the function that combines an update with the element at its position.
Evaluate combination_of(const Operation &operation) {
    const std::string_view fold = base_operator(operation.op).fold;
    if (fold.empty()) return replace;
    const BaseOperator &base = base_operator(fold);
    return is_integer(operation.operand(0).dtype) && base.evaluate_integer != nullptr ? base.evaluate_integer : base.evaluate;
}

} // namespace

void run_gather(Operation &operation) {
    Array &result = operation.result();
    result.data.assign(element_count(result.shape), fill_of(operation));
    const Windows windows = WindowFinder(operation, of_gather, result).find();
    for (size_t n = 0; n < windows.first_in_array.size(); n++) {
        if (windows.first_in_array[n] < 0) continue;
        for (size_t i = 0; i < windows.in_array.size(); i++)
            result.data[windows.first_in_windows[n] + windows.in_windows[i]] =
                operation.operand(0).data[windows.first_in_array[n] + windows.in_array[i]];
    }
}

// Updates are applied in row-major order of the index vectors, so that the order of summation is defined.
void run_scatter(Operation &operation) {
    Array &result = operation.result();
    const Array &updates = operation.operand(2);
    const Evaluate combine = combination_of(operation);
    result.data = operation.operand(0).data;
    const Windows windows = WindowFinder(operation, of_scatter, updates).find();
    for (size_t n = 0; n < windows.first_in_array.size(); n++) {
        if (windows.first_in_array[n] < 0) continue;
        for (size_t i = 0; i < windows.in_array.size(); i++) {
            double &place = result.data[windows.first_in_array[n] + windows.in_array[i]];
            const std::array<double, 2> pair{place, updates.data[windows.first_in_windows[n] + windows.in_windows[i]]};
            place = combine(pair);
        }
    }
    store(result, operation.mode);
}

void run_dynamic_slice(Operation &operation) {
    Array &result = operation.result();
    result.data.resize(element_count(result.shape));
    copy(result.shape, operation.operand(0).data.data(), part_view(operation, "sizes", result.shape, 1), result.data.data(),
         dense(result.shape));
}

void run_dynamic_update_slice(Operation &operation) {
    Array &result = operation.result();
    const Array &update = operation.operand(1);
    result.data = operation.operand(0).data;
    copy(update.shape, update.data.data(), dense(update.shape), result.data.data(), part_view(operation, "update", update.shape, 2));
}

} // namespace scalide

#include "interpret/window.h"
#include "interpret/fold.h"
#include "interpret/operation.h"
#include "interpret/strided.h"

namespace scalide {

namespace {

/// The positions that a window operator reads: for each window, the elements of the operand under it. Windows and elements are in row-major
/// order.
class Windows {
public:
    Windows(const Operation &operation, const Array &operand, const std::vector<int64_t> &counts) {
        const std::vector<WindowAxis> axes = window_axes(operation.attributes, operand.shape.size());
        for (size_t i = 0; i < axes.size(); i++) {
            walks_.emplace_back(axes[i], operand.shape[i], counts[i]);
            extents_.push_back(axes[i].window.value());
        }
        strides_ = dense(operand.shape).strides;
        counts_ = counts;
    }

    /// Calls visit(window number, position of an element).
    template<typename Visit>
    void each(const Visit &visit) const {
        int64_t window = 0;
        each_index(counts_, [&](const std::vector<int64_t> &o) {
            each_index(extents_, [&](const std::vector<int64_t> &k) {
                if (const int64_t place = find(o, k); place >= 0) visit(window, place);
            });
            window++;
        });
    }

private:
    int64_t find(const std::vector<int64_t> &o, const std::vector<int64_t> &k) const {
        int64_t place = 0;
        for (size_t i = 0; i < walks_.size(); i++) {
            const int64_t element = walks_[i].element(o[i], k[i]);
            if (element < 0) return -1;
            place += element * strides_[i];
        }
        return place;
    }

    std::vector<WindowWalk> walks_;
    std::vector<int64_t> counts_, extents_, strides_;
};

/// Returns the element that select_and_scatter_add and select_and_gather_add choose for each window, or -1 for a window without elements.
/// As in XLA, the chosen element remains if it is >= (or <=) the next one.
std::vector<int64_t> winners(const Operation &operation, const std::vector<int64_t> &counts) {
    const Array &operand = operation.operand(1);
    const double sign = operation.attributes.at("largest").word == "true" ? 1 : -1;
    std::vector<int64_t> found(element_count(counts), -1);
    Windows(operation, operand, counts).each([&](int64_t window, int64_t place) {
        int64_t &best = found[window];
        if (best < 0 || !(sign * operand.data[best] >= sign * operand.data[place])) best = place;
    });
    return found;
}

} // namespace

WindowWalk::WindowWalk(const WindowAxis &axis, int64_t extent, int64_t count) : window_(axis.window.value()) {
    const int64_t low = axis.low.value();
    elements_.reserve(count * window_);
    for (int64_t o = 0; o < count; o++)
        for (int64_t k = 0; k < window_; k++) {
            const int64_t place = o * axis.stride + k * axis.window_dilation - low, element = place / axis.base_dilation;
            const bool is_there = place >= 0 && place % axis.base_dilation == 0 && element < extent;
            elements_.push_back(is_there ? element : -1);
        }
}

void run_reduce_window(Operation &operation) {
    const Array &operand = operation.operand(0);
    const Fold fold(base_operator(operation.op).fold, operand.dtype);
    Array &result = operation.result();
    result.data.assign(element_count(result.shape), fold.start());
    Windows(operation, operand, result.shape).each([&](int64_t window, int64_t place) {
        result.data[window] = fold(result.data[window], operand.data[place]);
    });
    store(result, operation.mode);
}

void run_select_and_scatter_add(Operation &operation) {
    const Array &source = operation.operand(0);
    const Fold add("add", source.dtype);
    Array &result = operation.result();
    result.data.assign(element_count(result.shape), 0);
    const std::vector<int64_t> places = winners(operation, source.shape);
    for (size_t i = 0; i < places.size(); i++)
        if (places[i] >= 0) result.data[places[i]] = add(result.data[places[i]], source.data[i]);
    store(result, operation.mode);
}

void run_select_and_gather_add(Operation &operation) {
    Array &result = operation.result();
    for (const int64_t place : winners(operation, result.shape)) result.data.push_back(place < 0 ? 0 : operation.operand(0).data[place]);
    store(result, operation.mode);
}

} // namespace scalide

#include "interpret/strided.h"
#include <algorithm>

namespace scalide {

namespace {

void visit(const std::vector<int64_t> &shape, const std::vector<int64_t> &strides, size_t axis, int64_t place, std::vector<int64_t> &out) {
    if (axis == shape.size()) {
        out.push_back(place);
        return;
    }
    for (int64_t i = 0; i < shape[axis]; i++) visit(shape, strides, axis + 1, place + i * strides[axis], out);
}

} // namespace

View dense(const std::vector<int64_t> &shape) {
    View view{0, std::vector<int64_t>(shape.size(), 1)};
    for (size_t axis = shape.size(); axis-- > 1;) view.strides[axis - 1] = view.strides[axis] * shape[axis];
    return view;
}

std::vector<int64_t> places(const std::vector<int64_t> &shape, const View &view) {
    std::vector<int64_t> out;
    visit(shape, view.strides, 0, view.offset, out);
    return out;
}

void copy(const std::vector<int64_t> &shape, const double *from, const View &from_view, double *to, const View &to_view) {
    const std::vector<int64_t> sources = places(shape, from_view), targets = places(shape, to_view);
    for (size_t i = 0; i < sources.size(); i++) to[targets[i]] = from[sources[i]];
}

std::vector<int64_t> pick(const std::vector<int64_t> &values, const std::vector<int64_t> &positions) {
    std::vector<int64_t> picked;
    for (int64_t position : positions) picked.push_back(values[position]);
    return picked;
}

std::vector<int64_t> other_axes(int64_t rank, const std::vector<int64_t> &axes) {
    std::vector<int64_t> others;
    for (int64_t axis = 0; axis < rank; axis++)
        if (std::ranges::find(axes, axis) == axes.end()) others.push_back(axis);
    return others;
}

} // namespace scalide

#pragma once
#include <cstdint>
#include <vector>

namespace scalide {

/// A walk over an array: element (i0, i1, ...) is at offset + i0 * strides[0] + i1 * strides[1] + ...
struct View {
    int64_t offset = 0;
    std::vector<int64_t> strides;
};

/// The dense row-major view of a shape.
View dense(const std::vector<int64_t> &shape);

/// The place of every element of `shape` under a view, in row-major order.
std::vector<int64_t> places(const std::vector<int64_t> &shape, const View &view);

/// to[to_view(i)] = from[from_view(i)] for every index i of `shape`.
void copy(const std::vector<int64_t> &shape, const double *from, const View &from_view, double *to, const View &to_view);

/// The elements of `values` at these positions.
std::vector<int64_t> pick(const std::vector<int64_t> &values, const std::vector<int64_t> &positions);

/// 0 .. rank - 1 without `axes`, ascending.
std::vector<int64_t> other_axes(int64_t rank, const std::vector<int64_t> &axes);

} // namespace scalide

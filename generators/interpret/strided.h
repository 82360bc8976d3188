#pragma once
#include <cstdint>
#include <vector>

namespace scalide {

/// A strided view of an array: element (i0, i1, ...) is at offset + i0 * strides[0] + i1 * strides[1] + ...
struct View {
    int64_t offset = 0;
    std::vector<int64_t> strides;
};

/// Returns the dense row-major view of a shape.
View dense(const std::vector<int64_t> &shape);

/// Returns the position of every element of `shape` under a view, in row-major order.
std::vector<int64_t> places(const std::vector<int64_t> &shape, const View &view);

/// Copies to[to_view(i)] = from[from_view(i)] for every index i of `shape`.
void copy(const std::vector<int64_t> &shape, const double *from, const View &from_view, double *to, const View &to_view);

/// Returns the elements of `values` at these positions.
std::vector<int64_t> pick(const std::vector<int64_t> &values, const std::vector<int64_t> &positions);

/// Returns 0 .. rank - 1 without `axes`, ascending.
std::vector<int64_t> other_axes(int64_t rank, const std::vector<int64_t> &axes);

} // namespace scalide

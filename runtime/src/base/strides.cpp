#include "base/strides.h"
#include <algorithm>

namespace scalide {

namespace {

constexpr int64_t largest_offset = int64_t(1) << 58; // elements of 8 bytes then have addresses in 62 bits

bool is_empty(const scalide_array &array) {
    return std::any_of(array.extent, array.extent + array.rank, [](int64_t extent) { return extent == 0; });
}

int64_t bytes_of_element(const scalide_array &array) { return static_cast<int64_t>(scalide_dtype_size(array.dtype)); }

/// Calls visit(stride, extent) for the axes that have a stride.
template<typename Visit>
void for_each_axis(const scalide_array &array, Visit visit) {
    for (int32_t axis = 0; axis < array.rank; ++axis)
        if (array.extent[axis] != 1) visit(array.stride[axis], array.extent[axis]);
}

int64_t magnitude(int64_t stride) { return stride < 0 ? -stride : stride; }

/// The residues of an array's addresses modulo a number of bytes: all are in [begin, begin + length).
struct Residues {
    int64_t begin, length;
};

Residues residues_of(const scalide_array &array, int64_t period) {
    const int64_t bytes = bytes_of_element(array);
    int64_t begin = static_cast<int64_t>(reinterpret_cast<uintptr_t>(array.data) % static_cast<uintptr_t>(period)), length = bytes;
    for_each_axis(array, [&](int64_t stride, int64_t extent) {
        if (stride * bytes % period == 0) return;
        length += magnitude(stride) * bytes * (extent - 1);
        begin += std::min<int64_t>(stride, 0) * bytes * (extent - 1) % period;
    });
    return {(begin % period + period) % period, length};
}

/// True if the addresses of the arrays differ modulo this number of bytes.
bool separates(int64_t period, const scalide_array &a, const scalide_array &b) {
    const Residues first = residues_of(a, period), second = residues_of(b, period);
    const int64_t distance = (second.begin - first.begin + period) % period;
    return first.length <= distance && second.length <= period - distance;
}

bool has_separating_stride(const scalide_array &of, const scalide_array &a, const scalide_array &b) {
    bool found = false;
    for_each_axis(of, [&](int64_t stride, int64_t) { found |= stride != 0 && separates(magnitude(stride) * bytes_of_element(of), a, b); });
    return found;
}

} // namespace

bool is_dense(const scalide_array &array) {
    if (is_empty(array)) return true;
    int64_t dense = 1;
    for (int32_t axis = array.rank - 1; axis >= 0; --axis) {
        if (array.extent[axis] != 1 && array.stride[axis] != dense) return false;
        dense *= array.extent[axis];
    }
    return true;
}

bool find_offsets(const scalide_array &array, Offsets *offsets) {
    *offsets = {0, 0};
    bool fits = true;
    for_each_axis(array, [&](int64_t stride, int64_t extent) {
        int64_t last = 0;
        fits = fits && !__builtin_mul_overflow(stride, extent - 1, &last) && last < largest_offset && last > -largest_offset;
        if (fits) (last < 0 ? offsets->lowest : offsets->highest) += last;
    });
    return fits && offsets->highest - offsets->lowest < largest_offset;
}

MemoryRange range_of_data(const scalide_array &array) {
    Offsets offsets;
    if (!array.data || is_empty(array) || !find_offsets(array, &offsets)) return {0, 0};
    const auto data = reinterpret_cast<uintptr_t>(array.data);
    const int64_t bytes = bytes_of_element(array);
    return {data + static_cast<uintptr_t>(offsets.lowest * bytes), data + static_cast<uintptr_t>((offsets.highest + 1) * bytes)};
}

bool has_distinct_elements(const scalide_array &array) {
    struct {
        int64_t stride, extent;
    } axes[SCALIDE_MAX_RANK];
    int count = 0;
    if (is_empty(array)) return true;
    for_each_axis(array, [&](int64_t stride, int64_t extent) { axes[count++] = {magnitude(stride), extent}; });
    std::sort(axes, axes + count, [](const auto &a, const auto &b) { return a.stride < b.stride; });
    int64_t covered = 0;
    for (int i = 0; i < count; ++i) {
        if (axes[i].stride <= covered) return false;
        covered += axes[i].stride * (axes[i].extent - 1);
    }
    return true;
}

bool share_elements(const scalide_array &a, const scalide_array &b) {
    const MemoryRange first = range_of_data(a), second = range_of_data(b);
    if (first.begin >= second.end || second.begin >= first.end) return false;
    return !has_separating_stride(a, a, b) && !has_separating_stride(b, a, b);
}

} // namespace scalide

// Copies of arrays with strides, for arguments that kernels cannot read or write in place.
#include "context/copy.h"
#include "context/context.h"
#include <algorithm>
#include <cstring>

namespace scalide {

namespace {

/// What one task of a copy moves. A task takes this many bytes, so that small copies stay on one thread.
constexpr int64_t bytes_of_task = 256 << 10;

struct CopyTasks {
    StridedCopy copy;
    int64_t rows, rows_of_task;
};

template<typename Word>
void copy_words(const char *from, char *to, int64_t count, int64_t from_stride, int64_t to_stride) {
    constexpr auto bytes = static_cast<int64_t>(sizeof(Word));
    for (int64_t i = 0; i < count; ++i) std::memcpy(to + i * to_stride * bytes, from + i * from_stride * bytes, sizeof(Word));
}

void copy_row(const StridedCopy &copy, const char *from, char *to) {
    const int64_t count = copy.extent[0], from_stride = copy.from_stride[0], to_stride = copy.to_stride[0];
    if (from_stride == 1 && to_stride == 1) {
        std::memcpy(to, from, static_cast<size_t>(count * copy.element_bytes));
        return;
    }
    switch (copy.element_bytes) {
    case 1: return copy_words<uint8_t>(from, to, count, from_stride, to_stride);
    case 2: return copy_words<uint16_t>(from, to, count, from_stride, to_stride);
    case 4: return copy_words<uint32_t>(from, to, count, from_stride, to_stride);
    default: return copy_words<uint64_t>(from, to, count, from_stride, to_stride);
    }
}

/// The index of a row, and its offsets in both arrays. It avoids a division for each row.
class RowIndex {
public:
    RowIndex(const StridedCopy &copy, int64_t row) : copy_(copy) {
        for (int32_t axis = 1; axis < copy.rank; ++axis) {
            index_[axis] = row % copy.extent[axis];
            row /= copy.extent[axis];
            from += index_[axis] * copy.from_stride[axis];
            to += index_[axis] * copy.to_stride[axis];
        }
    }
    void next() {
        for (int32_t axis = 1; axis < copy_.rank; ++axis) {
            from += copy_.from_stride[axis];
            to += copy_.to_stride[axis];
            if (++index_[axis] < copy_.extent[axis]) return;
            index_[axis] = 0;
            from -= copy_.extent[axis] * copy_.from_stride[axis];
            to -= copy_.extent[axis] * copy_.to_stride[axis];
        }
    }

    int64_t from = 0, to = 0; ///< in elements

private:
    const StridedCopy &copy_;
    int64_t index_[SCALIDE_MAX_RANK] = {};
};

int copy_rows(void *, int task, uint8_t *closure) {
    const auto &tasks = *reinterpret_cast<const CopyTasks *>(closure);
    const StridedCopy &copy = tasks.copy;
    const int64_t begin = task * tasks.rows_of_task, end = std::min(tasks.rows, begin + tasks.rows_of_task);
    RowIndex index(copy, begin);
    for (int64_t row = begin; row < end; ++row) {
        copy_row(copy, copy.from + index.from * copy.element_bytes, copy.to + index.to * copy.element_bytes);
        index.next();
    }
    return 0;
}

} // namespace

StridedCopy::StridedCopy(const scalide_array &source, const scalide_array &target)
    : from(static_cast<const char *>(source.data)), to(static_cast<char *>(target.data)),
      element_bytes(static_cast<int64_t>(scalide_dtype_size(source.dtype))), rank(0) {
    for (int32_t axis = source.rank - 1; axis >= 0; --axis) {
        if (source.extent[axis] == 1) continue;
        const int32_t inner = rank - 1;
        const bool joins = rank > 0 && source.stride[axis] == from_stride[inner] * extent[inner] &&
                           target.stride[axis] == to_stride[inner] * extent[inner];
        if (joins) {
            extent[inner] *= source.extent[axis];
            continue;
        }
        extent[rank] = source.extent[axis];
        from_stride[rank] = source.stride[axis];
        to_stride[rank] = target.stride[axis];
        ++rank;
    }
    if (rank > 0) return;
    rank = 1;
    extent[0] = from_stride[0] = to_stride[0] = 1;
}

int64_t StridedCopy::elements() const {
    int64_t count = 1;
    for (int32_t axis = 0; axis < rank; ++axis) count *= extent[axis];
    return count;
}

void copy_elements(void *user_context, const scalide_array &from, const scalide_array &to) {
    CopyTasks tasks = {StridedCopy(from, to), 1, 1};
    for (int32_t axis = 1; axis < tasks.copy.rank; ++axis) tasks.rows *= tasks.copy.extent[axis];
    tasks.rows_of_task = std::max<int64_t>(1, bytes_of_task / (tasks.copy.extent[0] * tasks.copy.element_bytes));
    const auto count = static_cast<int>((tasks.rows + tasks.rows_of_task - 1) / tasks.rows_of_task);
    kernel_services.parallel_for(user_context, copy_rows, 0, count, reinterpret_cast<uint8_t *>(&tasks));
}

} // namespace scalide

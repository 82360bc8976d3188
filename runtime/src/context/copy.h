#pragma once
#include "scalide/scalide.h"

namespace scalide {

/// A copy between two arrays of the same dtype and shape. Axes of extent 1 are left out, and axes that are one axis in both arrays are
/// joined. The innermost axis comes first.
struct StridedCopy {
    const char *from;
    char *to;
    int64_t element_bytes;
    int32_t rank;                                                                                 ///< at least 1
    int64_t extent[SCALIDE_MAX_RANK], from_stride[SCALIDE_MAX_RANK], to_stride[SCALIDE_MAX_RANK]; ///< in elements

    StridedCopy(const scalide_array &from, const scalide_array &to);
    int64_t elements() const;
};

/// Copies the elements bit for bit, on the threads of the context of a kernel's user context.
void copy_elements(void *user_context, const scalide_array &from, const scalide_array &to);

} // namespace scalide

#include "lower/values/thread_access.h"
#include <algorithm>

namespace scalide {

int elements_of_access(const Program &program, const std::vector<int> &results) {
    int count = access_bytes;
    for (const int result : results) count = std::min(count, access_bytes / size_of(program.type(program.results[result].value).dtype));
    return count;
}

Halide::Expr inside_line(const Halide::Expr &index, int64_t extent, int group) {
    return Halide::clamp(index / group, 0, int(extent / group) - 1) * group + index % group;
}

} // namespace scalide

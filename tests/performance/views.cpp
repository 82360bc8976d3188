// views LIBRARY.so NAME [symbol=value ...]: what arrays with strides cost. Binds a program to dense arrays, to crops of arrays whose rows
// are a quarter longer, and to every second element of a row. Prints the least time of a run and the bytes that it copies. Inouts stay
// dense.
#include "bound_program.h"
#include <algorithm>
#include <cstdio>

namespace {

using namespace scalide::measuring;

struct Arrangement {
    const char *name;
    int64_t quarters, step; ///< length of a row in memory, in quarters of the extent; step in a row
    scalide_binding *binding = nullptr;
    double milliseconds = 1e30;
};

/// Returns a view with the elements of the dense array. Its memory lives as long as the process.
scalide_array view_of(const scalide_array &dense, const Arrangement &arrangement) {
    scalide_array view = dense;
    if (dense.rank == 0) return view;
    int64_t stride = arrangement.step, count = 1;
    for (int32_t axis = dense.rank - 1; axis >= 0; axis--) {
        view.stride[axis] = stride;
        stride = axis == dense.rank - 1 ? dense.extent[axis] * arrangement.quarters / 4 * arrangement.step : stride * dense.extent[axis];
        count *= dense.extent[axis];
    }
    const size_t width = scalide_dtype_size(dense.dtype);
    view.data = std::aligned_alloc(64, (static_cast<size_t>(std::max(count, stride)) * width + 63) / 64 * 64);
    if (scalide_convert(nullptr, &dense, &view) != SCALIDE_OK) fail("cannot copy an array");
    return view;
}

size_t copied_bytes(const scalide_binding *binding, size_t count) {
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++) bytes += scalide_binding_copied_bytes(binding, i);
    return bytes;
}

} // namespace

int main(int argc, char **argv) {
    if (argc < 3) fail("usage: views LIBRARY.so NAME [symbol=value ...]");
    const BoundProgram bound(argv[1], argv[2], 1, symbols_of(argc, argv, 3));
    const size_t count = bound.arguments.arrays.size();
    Arrangement arrangements[] = {{"dense", 4, 1}, {"crop", 5, 1}, {"step of 2", 4, 2}};
    for (Arrangement &each : arrangements) {
        std::vector<scalide_array> arrays = bound.arguments.arrays;
        for (size_t i = 0; i < count && each.name != arrangements[0].name; i++) {
            const int32_t role = bound.program->arguments[i].role;
            if (role == SCALIDE_INPUT || role == SCALIDE_OUTPUT) arrays[i] = view_of(arrays[i], each);
        }
        if (scalide_bind(bound.context, bound.program, arrays.data(), count, &each.binding) != SCALIDE_OK)
            fail(scalide_message(bound.context));
    }
    for (int round = 0; round < 50; round++) {  // in turn, because the speed of a machine changes
        for (int run = 0; run < 5 * 3; run++) { // several runs each, so that the arrays are in the caches
            Arrangement &each = arrangements[run / 5];
            const Clock::time_point start = Clock::now();
            if (scalide_run(each.binding) != SCALIDE_OK) fail(scalide_message(bound.context));
            each.milliseconds = std::min(each.milliseconds, milliseconds_since(start));
        }
    }
    for (const Arrangement &each : arrangements)
        std::printf("%-10s %9.4f ms %10zu bytes copied\n", each.name, each.milliseconds, copied_bytes(each.binding, count));
}

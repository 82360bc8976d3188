// Kernels in the shape of Halide's: argv entry points, closures, calls of the hooks.
#include "halide_hooks.h"
#include "sample_program.h"

namespace {

using scalide::HalideBuffer;

template<typename T>
T *host(void *buffer) {
    return reinterpret_cast<T *>(static_cast<HalideBuffer *>(buffer)->host);
}

struct RowsClosure {
    const float *x, *w;
    float scale, *h, *y;
    int columns;
};

int one_row(void *user_context, int row, uint8_t *bytes) {
    const auto &closure = *reinterpret_cast<const RowsClosure *>(bytes);
    auto *products = static_cast<float *>(halide_malloc(user_context, sizeof(float) * static_cast<size_t>(closure.columns)));
    for (int i = 0; i < closure.columns; ++i) products[i] = closure.x[row * closure.columns + i] * closure.w[i];
    closure.h[row] = 0;
    for (int i = 0; i < closure.columns; ++i) closure.h[row] += products[i];
    closure.y[row] = closure.h[row] * closure.scale;
    halide_free(user_context, products);
    return 0;
}

} // namespace

int sample_rows(void **arguments) {
    void *user_context = *static_cast<void **>(arguments[0]);
    const auto *x = static_cast<HalideBuffer *>(arguments[1]);
    RowsClosure closure = {host<float>(arguments[1]), host<float>(arguments[2]), *host<float>(arguments[3]),
                           host<float>(arguments[5]), host<float>(arguments[6]), x->dim[0].extent};
    return halide_do_par_for(user_context, one_row, 0, *static_cast<int32_t *>(arguments[4]), reinterpret_cast<uint8_t *>(&closure));
}

int sample_reduce(void **arguments) {
    const auto *y = static_cast<HalideBuffer *>(arguments[1]);
    double total = 0;
    for (int i = 0; i < y->dim[0].extent; ++i) total += host<float>(arguments[1])[i];
    *host<double>(arguments[2]) = total;
    return 0;
}

int sample_update(void **arguments) {
    const double total = *host<double>(arguments[1]);
    const int32_t rows = *static_cast<int32_t *>(arguments[2]);
    for (int i = 0; i < 4; ++i) host<float>(arguments[3])[i] += static_cast<float>(i + 1);
    *host<float>(arguments[4]) *= 2;
    *host<float>(arguments[5]) = static_cast<float>(total / rows);
    return 0;
}

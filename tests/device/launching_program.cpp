#include "launching_program.h"
#include "base/halide_abi.h"
#include <iterator>

using scalide::HalideBuffer;
using scalide::HalideDimension;

extern "C" {
int halide_cuda_initialize_kernels(void *user_context, void **state, const char *source, int size);
int halide_cuda_run(void *user_context, void *state, const char *name, int blocks_x, int blocks_y, int blocks_z, int threads_x,
                    int threads_y, int threads_z, int shared_bytes, size_t *sizes, void **arguments, int8_t *is_buffer);
int halide_copy_to_device(void *user_context, HalideBuffer *buffer, const void *device);
int halide_device_malloc(void *user_context, HalideBuffer *buffer, const void *device);
int halide_device_free(void *user_context, HalideBuffer *buffer);
}

namespace scalide::test {

int host_code_runs = 0, launching_shared_bytes = default_launching_shared_bytes;

namespace {

void *state; // one for all contexts, as Halide's objects have it
constexpr char image[] = "device code";

/// args: user context, x, loss, weights, size, b. What Halide makes of two stages that run on the device.
int kernel(void **args) {
    ++host_code_runs;
    void *user_context = *static_cast<void **>(args[0]);
    auto *x = static_cast<HalideBuffer *>(args[1]);
    const int32_t b = *static_cast<int32_t *>(args[5]);
    HalideDimension dimension = {0, b, 1, 0};
    HalideBuffer sums = {};
    sums.type = {2, 32, 1};
    sums.dimensions = 1;
    sums.dim = &dimension;
    halide_cuda_initialize_kernels(user_context, &state, image, 0);
    halide_device_malloc(user_context, &sums, nullptr);
    halide_copy_to_device(user_context, x, nullptr);
    uint64_t columns = 4;
    size_t row_sizes[] = {8, 8, 8, 0};
    void *row_arguments[] = {x, &sums, &columns, nullptr};
    int8_t row_buffers[] = {1, 1, 0, 0};
    halide_cuda_run(user_context, state, "rows.3", b, 1, 1, 64, 1, 1, launching_shared_bytes, row_sizes, row_arguments, row_buffers);
    halide_device_malloc(user_context, &sums, nullptr);
    size_t sum_sizes[] = {8, 8, 8, 8, 0};
    void *sum_arguments[] = {&sums, args[2], args[3], args[4], nullptr};
    int8_t sum_buffers[] = {1, 1, 1, 1, 0};
    halide_cuda_run(user_context, state, "sum.4", 1, 1, 1, 32, 1, 1, 0, sum_sizes, sum_arguments, sum_buffers);
    halide_device_free(user_context, &sums);
    return 0;
}

constexpr scalide_term b_term = {1, {0, -1, -1, -1}}, four_term = {4, {-1, -1, -1, -1}};
const scalide_extent x_shape[] = {{&b_term, 1}, {&four_term, 1}};
const scalide_symbol symbols[] = {{"b", 0, 1 << 20, 1, SCALIDE_FROM_ARGUMENTS, -1, nullptr}};
const scalide_argument arguments[] = {{"x", SCALIDE_INPUT, 0, -1, 0}, {"loss", SCALIDE_OUTPUT, 1, -1, 0}};
const scalide_buffer buffers[] = {
    {"x", SCALIDE_F32, 2, x_shape, SCALIDE_STORAGE_DATA, 0, -1, 0},
    {"loss", SCALIDE_F32, 0, nullptr, SCALIDE_STORAGE_DATA, 1, 0, 0},
    {"weights", SCALIDE_F32, 1, &x_shape[1], SCALIDE_STORAGE_ARENA, -1, 0, 0},
    {"size", SCALIDE_F32, 0, nullptr, SCALIDE_STORAGE_SCALAR, 0, 0, 0},
};
const scalide_operand operands[] = {
    {SCALIDE_OPERAND_BUFFER, 0, 2, x_shape, 0}, {SCALIDE_OPERAND_BUFFER, 1, 0, nullptr, 0}, {SCALIDE_OPERAND_BUFFER, 2, 1, &x_shape[1], 0},
    {SCALIDE_OPERAND_BUFFER, 3, 0, nullptr, 0}, {SCALIDE_OPERAND_SYMBOL, 0, 0, nullptr, 0},
};
const scalide_step steps[] = {{"row_sums", kernel, operands, std::size(operands), nullptr, nullptr}};
const scalide_program program = {SCALIDE_PLAN_VERSION,
                                 "launching",
                                 SCALIDE_CUDA,
                                 "x86-64-linux-cuda-cuda_capability_80",
                                 "f32",
                                 "0",
                                 std::size(symbols),
                                 std::size(arguments),
                                 std::size(buffers),
                                 std::size(steps),
                                 1,
                                 symbols,
                                 arguments,
                                 buffers,
                                 steps,
                                 0,
                                 nullptr,
                                 0,
                                 nullptr,
                                 nullptr,
                                 0};

} // namespace

const scalide_program *launching_program() { return &program; }

} // namespace scalide::test

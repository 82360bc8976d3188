// device.views.*: arrays with strides on a device, which its kernels cannot read in place. The emulated GPU executes the copies.
#include "elementwise.h"
#include "elementwise_cpu.h"
#include "elementwise_cuda.h"
#include "elementwise_opencl.h"
#include "launching_program.h"
#include "scalide/plan.h"
#include "standin_driver.h"
#include <algorithm>
#include <cstring>

using namespace scalide::test;

namespace {

/// Arrays of elementwise.scl that are views in larger arrays of a context's memory.
class Views {
public:
    /// `rows` and `columns`: the steps of the two axes, in elements.
    Views(scalide_context *context, int64_t b, int64_t row, int64_t column) : context_(context), dense_(context, b) {
        for (const scalide_array &array : dense_.arrays) {
            scalide_array view = array;
            view.stride[0] = row, view.stride[1] = column;
            const size_t bytes = view.rank == 2 ? scalide_dtype_size(view.dtype) * static_cast<size_t>(b * row) : 0;
            arrays.push_back(view.rank == 2 ? view : array);
            whole_.emplace_back(bytes, around);
            if (bytes == 0) continue;
            EXPECT_EQ(scalide_allocate(context_, bytes, &arrays.back().data), SCALIDE_OK);
            std::vector<unsigned char> elements(scalide_dtype_size(view.dtype) * static_cast<size_t>(b * columns));
            EXPECT_EQ(scalide_copy_out(context_, elements.data(), array.data, elements.size()), SCALIDE_OK);
            for_each_element(arrays.size() - 1,
                             [&](size_t at, size_t index, size_t size) { std::memcpy(&whole_.back()[at], &elements[index], size); });
            EXPECT_EQ(scalide_copy_in(context_, arrays.back().data, whole_.back().data(), bytes), SCALIDE_OK);
        }
    }
    ~Views() {
        for (size_t i = 0; i < arrays.size(); i++)
            if (!whole_[i].empty()) scalide_release(context_, arrays[i].data);
    }
    Views(const Views &) = delete;
    Views &operator=(const Views &) = delete;

    /// All elements of the outputs in the order of Elementwise::results.
    std::vector<unsigned char> results() {
        std::vector<unsigned char> all;
        for (size_t i = 4; i < arrays.size(); i++) {
            std::vector<unsigned char> read(std::max(whole_[i].size(), scalide_dtype_size(arrays[i].dtype)));
            EXPECT_EQ(scalide_copy_out(context_, read.data(), arrays[i].data, read.size()), SCALIDE_OK);
            if (whole_[i].empty()) {
                all.insert(all.end(), read.begin(), read.end());
                continue;
            }
            for_each_element(i, [&](size_t at, size_t, size_t size) {
                all.insert(all.end(), read.begin() + static_cast<long>(at), read.begin() + static_cast<long>(at + size));
                std::memset(&read[at], around, size);
            });
            EXPECT_EQ(std::count(read.begin(), read.end(), around), static_cast<long>(read.size())) << "memory around argument " << i;
        }
        unsigned char scale[sizeof(float)];
        EXPECT_EQ(scalide_copy_out(context_, scale, arrays[4].scale, sizeof(scale)), SCALIDE_OK);
        all.insert(all.end(), scale, scale + sizeof(scale));
        return all;
    }

    std::vector<scalide_array> arrays;

private:
    static constexpr unsigned char around = 0xa5;
    static constexpr int64_t columns = 33;

    /// Calls visit(place in bytes, place in the dense array in bytes, bytes).
    template<typename Visit>
    void for_each_element(size_t argument, Visit visit) const {
        const scalide_array &array = arrays[argument];
        const size_t size = scalide_dtype_size(array.dtype);
        for (int64_t i = 0; i < array.extent[0]; i++)
            for (int64_t k = 0; k < columns; k++)
                visit(size * static_cast<size_t>(i * array.stride[0] + k * array.stride[1]), size * static_cast<size_t>(i * columns + k),
                      size);
    }

    scalide_context *context_;
    Elementwise dense_;
    std::vector<std::vector<unsigned char>> whole_;
};

const struct { int64_t b, row, column; } steps[] = {{5, 40, 1}, {3, 100, 3}, {1, 80, 2}, {64, 37, 1}};

void compare_with_cpu(int32_t device, const scalide_program *program) {
    const Context context(device);
    ASSERT_EQ(context.status, SCALIDE_OK) << context.message;
    for (const auto &step : steps) {
        SCOPED_TRACE(step.row);
        Views views(context.handle, step.b, step.row, step.column);
        scalide_binding *binding = nullptr;
        ASSERT_EQ(scalide_bind(context.handle, program, views.arrays.data(), views.arrays.size(), &binding), SCALIDE_OK)
            << scalide_message(context.handle);
        const size_t elements = static_cast<size_t>(step.b * 33);
        EXPECT_EQ(scalide_binding_copied_bytes(binding, 0), 4 * elements);
        EXPECT_EQ(scalide_binding_copied_bytes(binding, 4), 2 * 4 * elements) << "an inout is copied in both directions";
        EXPECT_EQ(scalide_binding_copied_bytes(binding, 6), elements);
        ASSERT_EQ(scalide_run(binding), SCALIDE_OK) << scalide_message(context.handle);
        const scalide_status captured = device == SCALIDE_CUDA ? scalide_capture(binding) : SCALIDE_OK;
        ASSERT_EQ(captured, SCALIDE_OK) << scalide_message(context.handle);
        ASSERT_EQ(scalide_run(binding), SCALIDE_OK) << scalide_message(context.handle);
        EXPECT_EQ(views.results(), run(SCALIDE_CPU, elementwise_cpu_program(), step.b, 2));
        Views others(context.handle, step.b, step.row + 5, step.column);
        ASSERT_EQ(scalide_set_arguments(binding, others.arrays.data(), others.arrays.size()), SCALIDE_OK);
        for (int i = 0; i < 2; i++) ASSERT_EQ(scalide_run(binding), SCALIDE_OK) << scalide_message(context.handle);
        EXPECT_EQ(others.results(), run(SCALIDE_CPU, elementwise_cpu_program(), step.b, 2));
        scalide_binding_destroy(binding);
    }
}

} // namespace

TEST(views, on_a_gpu_give_the_values_of_dense_arrays) {
    const Computing computing;
    compare_with_cpu(SCALIDE_CUDA, elementwise_cuda_program());
    EXPECT_EQ(Standin().live(), 0u);
}

TEST(views, on_an_opencl_device_give_the_values_of_dense_arrays) {
    if (const Context context(SCALIDE_OPENCL); context.status == SCALIDE_NO_DEVICE) GTEST_SKIP() << context.message;
    compare_with_cpu(SCALIDE_OPENCL, elementwise_opencl_program());
}

namespace {

/// Binds a view and runs. Returns the first status that is not OK.
scalide_status use_a_view(scalide_context *context) {
    const int64_t shape[] = {6, 4};
    scalide_array arrays[] = {scalide_dense_array(nullptr, nullptr, SCALIDE_F32, 2, shape),
                              scalide_dense_array(nullptr, nullptr, SCALIDE_F32, 0, nullptr)};
    arrays[0].stride[0] = 8;
    scalide_binding *binding = nullptr;
    scalide_status status = scalide_allocate(context, 6 * 8 * sizeof(float), &arrays[0].data);
    if (status == SCALIDE_OK) status = scalide_allocate(context, sizeof(float), &arrays[1].data);
    if (status == SCALIDE_OK) status = scalide_bind(context, launching_program(), arrays, 2, &binding);
    if (status == SCALIDE_OK) status = scalide_run(binding);
    if (status == SCALIDE_OK) status = scalide_capture(binding);
    if (status == SCALIDE_OK) status = scalide_run(binding);
    if (status == SCALIDE_OK) status = scalide_synchronise(context);
    scalide_binding_destroy(binding);
    for (const scalide_array &array : arrays) scalide_release(context, array.data);
    return status;
}

} // namespace

TEST(views, on_a_gpu_leave_nothing_after_a_failing_call) {
    const Standin standin;
    int reported = 0;
    for (int64_t number = 0;; number++) {
        standin.reset(number, 999);
        {
            const Context context(SCALIDE_CUDA);
            const scalide_status status = context.status == SCALIDE_OK ? use_a_view(context.handle) : context.status;
            reported += status != SCALIDE_OK;
            const bool has_words = !context.handle || scalide_message(context.handle)[0] != 0;
            EXPECT_TRUE(status == SCALIDE_OK || has_words) << number;
        }
        const std::vector<std::string> calls = standin.calls();
        if (number >= static_cast<int64_t>(calls.size())) break;                      // no call has failed
        if (calls[static_cast<size_t>(number)] == "cuCtxPushCurrent") standin.lose(); // who cannot enter cannot release
        EXPECT_EQ(standin.live(), 0u) << number << ' ' << calls[static_cast<size_t>(number)];
    }
    EXPECT_GT(reported, 20);
    standin.reset(-1, 0);
}

namespace {

int no_launches(void **) { return 0; }

} // namespace

TEST(views, of_8_axes_are_copied_to_dense_memory) {
    const Computing computing;
    const scalide_term terms[] = {{2, {-1, -1, -1, -1}}, {3, {-1, -1, -1, -1}}};
    const scalide_extent two = {&terms[0], 1}, three = {&terms[1], 1}, shape[] = {two, three, two, two, three, two, two, three};
    const scalide_argument argument = {"w", SCALIDE_INOUT, 0, -1, 0};
    const scalide_buffer buffer = {"w", SCALIDE_F64, 8, shape, SCALIDE_STORAGE_DATA, 0, 0, 0, 0, nullptr};
    const scalide_operand operand = {SCALIDE_OPERAND_BUFFER, 0, 8, shape, 0};
    const scalide_step step = {"nothing", no_launches, &operand, 1, nullptr, nullptr};
    scalide_program program = {};
    program.plan_version = SCALIDE_PLAN_VERSION;
    program.name = program.numerics = program.hash = "copies";
    program.device = SCALIDE_CUDA;
    program.target = "x86-64-linux-cuda-cuda_capability_80";
    program.argument_count = program.buffer_count = program.step_count = 1;
    program.arguments = &argument;
    program.buffers = &buffer;
    program.steps = &step;
    const int64_t extents[] = {2, 3, 2, 2, 3, 2, 2, 3};
    scalide_array array = scalide_dense_array(nullptr, nullptr, SCALIDE_F64, 8, extents);
    int64_t stride = 2;
    for (int axis = 7; axis >= 0; axis--) array.stride[axis] = stride, stride = stride * extents[axis] + 1;
    std::vector<double> memory(static_cast<size_t>(stride)), elements;
    for (size_t i = 0; i < memory.size(); i++) memory[i] = static_cast<double>(i);
    for (size_t i = 0; i < 864; i++) {
        size_t rest = i;
        int64_t at = 0;
        for (int axis = 7; axis >= 0; axis--) {
            const auto extent = static_cast<size_t>(extents[axis]);
            at += static_cast<int64_t>(rest % extent) * array.stride[axis], rest /= extent;
        }
        elements.push_back(static_cast<double>(at));
    }
    const Context context(SCALIDE_CUDA);
    ASSERT_EQ(scalide_allocate(context.handle, 8 * memory.size(), &array.data), SCALIDE_OK);
    ASSERT_EQ(scalide_copy_in(context.handle, array.data, memory.data(), 8 * memory.size()), SCALIDE_OK);
    scalide_binding *binding = nullptr;
    ASSERT_EQ(scalide_bind(context.handle, &program, &array, 1, &binding), SCALIDE_OK) << scalide_message(context.handle);
    std::vector<double> seen(864), after(memory.size());
    const auto see = [](void *user, const scalide_traced *, const scalide_array *shown) {
        std::memcpy(static_cast<std::vector<double> *>(user)->data(), shown->data, 8 * 864);
    };
    ASSERT_EQ(scalide_run_traced(binding, see, &seen), SCALIDE_OK) << scalide_message(context.handle);
    EXPECT_EQ(seen, elements);
    ASSERT_EQ(scalide_copy_out(context.handle, after.data(), array.data, 8 * memory.size()), SCALIDE_OK);
    EXPECT_EQ(after, memory);
    scalide_binding_destroy(binding);
    scalide_release(context.handle, array.data);
}

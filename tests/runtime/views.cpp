// Arrays with strides in scalide_bind: crops and steps of inputs, outputs and inouts.
#include "allocation.h"
#include "base/halide_abi.h"
#include "base/strides.h"
#include "fixture.h"
#include "scalide/plan.h"
#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <numeric>
#include <string>

using namespace scalide::test;

namespace {

using scalide::HalideBuffer;
using scalide::HalideDimension;

float *host(void *buffer) { return reinterpret_cast<float *>(static_cast<HalideBuffer *>(buffer)->host); }

/// Calls visit(offset) for the elements of a kernel's view, in row-major order.
template<typename Visit>
void for_each_element(const HalideBuffer &buffer, int32_t dimension, int64_t offset, Visit visit) {
    if (dimension < 0) return visit(offset);
    const HalideDimension &axis = buffer.dim[dimension];
    for (int32_t i = 0; i < axis.extent; ++i) for_each_element(buffer, dimension - 1, offset + int64_t(i) * axis.stride, visit);
}

std::vector<int64_t> offsets_of(void *argument) {
    const auto &buffer = *static_cast<HalideBuffer *>(argument);
    std::vector<int64_t> offsets;
    for_each_element(buffer, buffer.dimensions - 1, 0, [&](int64_t offset) { offsets.push_back(offset); });
    return offsets;
}

/// y = 2 * x + w, then w = w + x. It reads and writes each view by its strides.
int add(void **arguments) {
    const std::vector<int64_t> x = offsets_of(arguments[1]), w = offsets_of(arguments[2]), y = offsets_of(arguments[3]);
    for (size_t i = 0; i < x.size(); ++i) {
        host(arguments[3])[y[i]] = 2 * host(arguments[1])[x[i]] + host(arguments[2])[w[i]];
        host(arguments[2])[w[i]] += host(arguments[1])[x[i]];
    }
    return 0;
}

/// program add(x: f32[...], w: f32[...] inout) -> (y: f32[...])
struct AddPlan {
    std::vector<scalide_term> terms;
    std::vector<scalide_extent> shape, merged;
    scalide_argument arguments[3] = {{"x", SCALIDE_INPUT, 0, -1, 0}, {"w", SCALIDE_INOUT, 1, -1, 0}, {"y", SCALIDE_OUTPUT, 2, -1, 0}};
    std::vector<scalide_buffer> buffers;
    std::vector<scalide_operand> operands;
    scalide_step step = {};
    scalide_program program = {};

    /// `strided`: the kernel reads the strides of its views. `is_merged`: it sees the first two axes as one.
    explicit AddPlan(const std::vector<int64_t> &extents, int32_t strided = 0, bool is_merged = false) {
        terms.reserve(extents.size() + 1);
        for (int64_t extent : extents) shape.push_back(number(extent));
        merged = shape;
        if (is_merged) {
            merged.erase(merged.begin());
            merged[0] = number(extents[0] * extents[1]);
        }
        const auto rank = static_cast<int32_t>(shape.size());
        for (int32_t i = 0; i < 3; ++i) {
            const int32_t first = i == 0 ? -1 : 0;
            buffers.push_back({arguments[i].name, SCALIDE_F32, rank, shape.data(), SCALIDE_STORAGE_DATA, i, first, 0, 0, nullptr});
            operands.push_back({SCALIDE_OPERAND_BUFFER, i, static_cast<int32_t>(merged.size()), merged.data(), strided});
        }
        step = {"add", add, operands.data(), 3, nullptr};
        program.plan_version = SCALIDE_PLAN_VERSION;
        program.name = "add";
        program.target = "x86-64-linux-sse41";
        program.numerics = "f32";
        program.hash = "0";
        program.argument_count = 3;
        program.buffer_count = 3;
        program.step_count = 1;
        program.arguments = arguments;
        program.buffers = buffers.data();
        program.steps = &step;
    }
    AddPlan(const AddPlan &) = delete;
    AddPlan &operator=(const AddPlan &) = delete;

private:
    scalide_extent number(int64_t value) {
        terms.push_back({value, {-1, -1, -1, -1}});
        return {&terms.back(), 1};
    }
};

constexpr float untouched = -77;

/// A view in memory with elements around it and between its elements.
struct View {
    std::vector<float> memory;
    scalide_array array;

    View(const std::vector<int64_t> &extents, const std::vector<int64_t> &strides) {
        array = scalide_dense_array(nullptr, nullptr, SCALIDE_F32, static_cast<int32_t>(extents.size()), extents.data());
        std::copy(strides.begin(), strides.end(), array.stride);
        scalide::Offsets offsets;
        EXPECT_TRUE(scalide::find_offsets(array, &offsets));
        memory.assign(static_cast<size_t>(offsets.highest - offsets.lowest + 1 + 3 * 16), untouched);
        float *first = memory.data() + 16 - offsets.lowest;
        while (reinterpret_cast<uintptr_t>(first) % 64 != 0) ++first;
        array.data = first;
    }

    std::vector<float *> elements() const {
        std::vector<float *> places{static_cast<float *>(array.data)};
        for (int32_t axis = 0; axis < array.rank; ++axis) {
            std::vector<float *> next;
            for (float *place : places)
                for (int64_t i = 0; i < array.extent[axis]; ++i) next.push_back(place + i * array.stride[axis]);
            places = next;
        }
        return places;
    }
    void fill(float first) {
        for (float *place : elements()) *place = first++;
    }
    std::vector<float> values() const {
        std::vector<float> read;
        for (const float *place : elements()) read.push_back(*place);
        return read;
    }
    /// True if all other elements of the memory are unchanged.
    bool is_clean_around() const {
        std::vector<float> rest = memory;
        for (const float *place : elements()) rest[static_cast<size_t>(place - memory.data())] = untouched;
        return std::all_of(rest.begin(), rest.end(), [](float value) { return value == untouched; });
    }
};

size_t elements(const std::vector<int64_t> &extents) {
    return static_cast<size_t>(std::accumulate(extents.begin(), extents.end(), int64_t(1), std::multiplies<>()));
}

std::vector<int64_t> dense_strides(const std::vector<int64_t> &extents) {
    std::vector<int64_t> strides(extents.size(), 1);
    for (size_t axis = extents.size(); axis-- > 1;) strides[axis - 1] = strides[axis] * extents[axis];
    return strides;
}

/// Fills the arrays, runs twice and compares the results.
void run_and_compare(scalide_binding *binding, View &x, View &w, View &y) {
    x.fill(5);
    w.fill(100);
    for (int run = 0; run < 2; ++run) {
        ASSERT_EQ(scalide_run(binding), SCALIDE_OK);
        const std::vector<float> xs = x.values(), ws = w.values(), ys = y.values();
        for (size_t i = 0; i < xs.size(); ++i) {
            const auto k = static_cast<float>(i);
            ASSERT_EQ(xs[i], 5 + k);
            ASSERT_EQ(ys[i], 2 * (5 + k) + 100 + k + static_cast<float>(run) * (5 + k)) << "element " << i;
            ASSERT_EQ(ws[i], 100 + k + static_cast<float>(run + 1) * (5 + k)) << "element " << i;
        }
    }
    EXPECT_TRUE(x.is_clean_around() && w.is_clean_around() && y.is_clean_around());
}

/// Dense memory of an inout must be aligned.
std::vector<int64_t> apart(std::vector<int64_t> strides) {
    for (int64_t &stride : strides) stride *= 2;
    return strides;
}

struct Case {
    const char *name;
    std::vector<int64_t> extents, strides;
};

const Case cases[] = {
    {"crop", {3, 5}, {11, 1}},
    {"step_of_rows", {3, 5}, {10, 1}},
    {"step_of_columns", {3, 5}, {10, 2}},
    {"vector_with_step", {7}, {3}},
    {"vector_reversed", {7}, {-1}},
    {"rows_reversed", {4, 3}, {-8, 1}},
    {"column_major", {3, 5}, {1, 3}},
    {"rank_3", {2, 3, 4}, {50, 10, 1}},
    {"rank_4", {2, 2, 3, 4}, {200, 64, 16, 2}},
    {"rank_4_partly_dense", {2, 3, 4, 5}, {100, 20, 5, 1}},
    {"one_row", {1, 5}, {-9, 2}},
    {"one_column", {5, 1}, {4, 9}},
    {"one_element", {1, 1}, {7, 7}},
    {"no_elements", {0, 4}, {9, 3}},
    {"large", {300, 700}, {1000, 1}},
};

class views : public testing::TestWithParam<Case> {};

} // namespace

TEST_P(views, give_the_values_of_dense_arrays) {
    const Case &each = GetParam();
    const AddPlan plan(each.extents), reading(each.extents, 1);
    for (int which = 1; which < 8; ++which) { // which of x, w and y are views
        SCOPED_TRACE(which);
        Context context(2);
        const std::vector<int64_t> dense = dense_strides(each.extents);
        View x(each.extents, which & 1 ? each.strides : dense), y(each.extents, which & 4 ? each.strides : dense);
        View w(each.extents, which & 2 ? each.strides : apart(dense));
        const scalide_array arrays[] = {x.array, w.array, y.array};
        const size_t bytes = elements(each.extents) * sizeof(float);
        for (const AddPlan *program : {&plan, &reading}) {
            Bound binding;
            ASSERT_EQ(scalide_bind(context.handle, &program->program, arrays, 3, &binding.handle), SCALIDE_OK)
                << scalide_message(context.handle);
            run_and_compare(binding.handle, x, w, y);
            EXPECT_EQ(scalide_binding_copied_bytes(binding.handle, 1), scalide::is_dense(w.array) ? 0 : 2 * bytes);
            if (program == &reading) continue;
            EXPECT_EQ(scalide_binding_copied_bytes(binding.handle, 0), scalide::is_dense(x.array) ? 0 : bytes);
            EXPECT_EQ(scalide_binding_copied_bytes(binding.handle, 2), scalide::is_dense(y.array) ? 0 : bytes);
        }
    }
}

INSTANTIATE_TEST_SUITE_P(runtime, views, testing::ValuesIn(cases), [](const auto &each) { return std::string(each.param.name); });

namespace {

/// Binds x, w and y to a plan.
struct Trio {
    View x, w, y;
    std::array<scalide_array, 3> arrays;
    Trio(const std::vector<int64_t> &extents, const std::vector<int64_t> &xs, const std::vector<int64_t> &ys)
        : x(extents, xs), w(extents, apart(dense_strides(extents))), y(extents, ys), arrays{x.array, w.array, y.array} {}
};

} // namespace

TEST(views_in_place, need_kernels_that_read_strides) {
    struct {
        const char *name;
        std::vector<int64_t> extents, strides;
        bool is_merged, in_place;
    } const each[] = {
        {"crop", {3, 5}, {9, 1}, false, true},
        {"rank 3", {2, 3, 4}, {60, 12, 1}, false, true},
        {"merged axes that are one axis", {2, 3, 4}, {36, 12, 1}, true, true},
        {"merged axes that are not one axis", {2, 3, 4}, {60, 12, 1}, true, false},
        {"axes of extent 1", {1, 3, 1, 4}, {-5, 8, 0, 1}, false, true},
        {"step of columns", {3, 5}, {20, 2}, false, false},
        {"reversed rows", {3, 5}, {-9, 1}, false, false},
    };
    for (const auto &row : each) {
        SCOPED_TRACE(row.name);
        Context context(1);
        const AddPlan plan(row.extents, 1, row.is_merged);
        Trio trio(row.extents, row.strides, row.strides);
        Bound binding;
        ASSERT_EQ(scalide_bind(context.handle, &plan.program, trio.arrays.data(), 3, &binding.handle), SCALIDE_OK)
            << scalide_message(context.handle);
        for (size_t index : {0, 2}) EXPECT_EQ(scalide_binding_copied_bytes(binding.handle, index) == 0, row.in_place);
        run_and_compare(binding.handle, trio.x, trio.w, trio.y);
    }
}

TEST(views_in_place, are_shown_dense_by_traces) {
    Context context(1);
    const AddPlan plan({3, 5}, 1);
    Trio trio({3, 5}, {9, 1}, {7, 1});
    Bound binding;
    ASSERT_EQ(scalide_bind(context.handle, &plan.program, trio.arrays.data(), 3, &binding.handle), SCALIDE_OK);
    trio.x.fill(0);
    trio.w.fill(0);
    std::vector<float> seen;
    const auto see = [](void *user, const scalide_traced *buffer, const scalide_array *array) {
        EXPECT_TRUE(scalide::is_dense(*array));
        const auto *data = static_cast<const float *>(array->data);
        if (std::strcmp(buffer->name, "y") == 0) static_cast<std::vector<float> *>(user)->assign(data, data + 15);
    };
    ASSERT_EQ(scalide_run_traced(binding.handle, see, &seen), SCALIDE_OK);
    EXPECT_EQ(seen, trio.y.values());
    scalide_non_finite first;
    *trio.x.elements()[14] = INFINITY;
    ASSERT_EQ(scalide_run_checked(binding.handle, &first), SCALIDE_OK);
    EXPECT_TRUE(first.buffer);
}

TEST(views_of_a_binding, are_in_the_log) {
    std::string log;
    scalide_options options = {};
    options.struct_size = sizeof(options);
    options.threads = 1;
    options.log = [](void *user, const char *message) { *static_cast<std::string *>(user) = message; };
    options.log_user = &log;
    scalide_context *context = nullptr;
    ASSERT_EQ(scalide_context_create(&options, &context), SCALIDE_OK);
    const AddPlan plan({3, 5});
    Trio trio({3, 5}, {9, 1}, {5, 1});
    Bound binding;
    ASSERT_EQ(scalide_bind(context, &plan.program, trio.arrays.data(), 3, &binding.handle), SCALIDE_OK);
    EXPECT_EQ(log,
              "add: bound: 1 steps, 128 bytes of intermediate values. Each run copies, because the strides are not dense: x (60 bytes), "
              "w (120 bytes).");
    EXPECT_EQ(scalide_arena_bytes(binding.handle), 128U) << "each copy is a multiple of 64 bytes";
    EXPECT_EQ(scalide_binding_copied_bytes(binding.handle, 3), 0U);
    EXPECT_EQ(scalide_binding_copied_bytes(nullptr, 0), 0U);
    scalide_context_destroy(context);
}

TEST(views_of_a_binding, may_be_replaced) {
    Context context(1);
    const AddPlan plan({3, 5}), reading({3, 5}, 1);
    for (const AddPlan *program : {&plan, &reading}) {
        Trio trio({3, 5}, {9, 1}, {5, 1}), other({3, 5}, {5, 1}, {5, 1}), stepped({3, 5}, {20, 2}, {9, 1});
        Bound binding;
        ASSERT_EQ(scalide_bind(context.handle, &program->program, trio.arrays.data(), 3, &binding.handle), SCALIDE_OK);
        ASSERT_EQ(scalide_set_arguments(binding.handle, other.arrays.data(), 3), SCALIDE_OK) << scalide_message(context.handle);
        run_and_compare(binding.handle, other.x, other.w, other.y);
        const scalide_status status = scalide_set_argument(binding.handle, 0, &stepped.arrays[0]);
        EXPECT_EQ(status, program == &plan ? SCALIDE_OK : SCALIDE_INVALID_ARGUMENT);
        if (program == &reading) {
            EXPECT_STREQ(scalide_message(context.handle), "add.x: the kernels must be able to read the strides, as for the array of "
                                                          "scalide_bind, got other strides. Bind this array with scalide_bind.");
        }
        EXPECT_EQ(scalide_set_argument(binding.handle, 2, &stepped.arrays[2]), SCALIDE_INVALID_ARGUMENT);
        EXPECT_STREQ(scalide_message(context.handle), "add.y: the strides must be dense and row-major, because the array of scalide_bind "
                                                      "was dense, got other strides. Bind this array with scalide_bind.");
        EXPECT_EQ(scalide_set_arguments(binding.handle, stepped.arrays.data(), 3), SCALIDE_INVALID_ARGUMENT);
        ASSERT_EQ(scalide_set_argument(binding.handle, 0, &trio.arrays[0]), SCALIDE_OK);
        run_and_compare(binding.handle, trio.x, other.w, other.y);
    }
}

TEST(views_of_a_binding, are_its_own_in_bind_like_and_set_arena) {
    Context context(1);
    const AddPlan plan({3, 5}), reading({3, 5}, 1);
    for (const AddPlan *program : {&plan, &reading}) {
        Trio dense({3, 5}, {5, 1}, {5, 1}), crop({3, 5}, {9, 1}, {7, 1}), other({3, 5}, {11, 1}, {6, 1});
        Bound first, second, third;
        ASSERT_EQ(scalide_bind(context.handle, &program->program, dense.arrays.data(), 3, &first.handle), SCALIDE_OK);
        ASSERT_EQ(scalide_bind_like(context.handle, first.handle, crop.arrays.data(), 3, &second.handle), SCALIDE_OK);
        ASSERT_EQ(scalide_bind_like(context.handle, second.handle, other.arrays.data(), 3, &third.handle), SCALIDE_OK);
        run_and_compare(second.handle, crop.x, crop.w, crop.y);
        run_and_compare(third.handle, other.x, other.w, other.y);
        run_and_compare(first.handle, dense.x, dense.w, dense.y);
        alignas(64) static char arena[1024];
        for (scalide_binding *each : {second.handle, third.handle})
            ASSERT_EQ(scalide_set_arena(each, arena, scalide_arena_bytes(each)), SCALIDE_OK) << scalide_message(context.handle);
        run_and_compare(second.handle, crop.x, crop.w, crop.y);
        run_and_compare(third.handle, other.x, other.w, other.y);
    }
}

TEST(views_of_a_binding, with_one_address_for_two_elements_are_inputs_only) {
    Context context(1);
    const AddPlan plan({3, 5});
    Trio repeated({3, 5}, {0, 1}, {5, 1}), overlapping({3, 5}, {2, 1}, {4, 1}), zero({3, 5}, {5, 1}, {5, 0});
    Bound binding;
    ASSERT_EQ(scalide_bind(context.handle, &plan.program, repeated.arrays.data(), 3, &binding.handle), SCALIDE_OK);
    repeated.x.fill(1);
    repeated.w.fill(0);
    ASSERT_EQ(scalide_run(binding.handle), SCALIDE_OK);
    EXPECT_EQ(repeated.y.values()[5], 2 * repeated.x.values()[0] + 5);
    Bound refused;
    EXPECT_EQ(scalide_bind(context.handle, &plan.program, overlapping.arrays.data(), 3, &refused.handle), SCALIDE_INVALID_ARGUMENT);
    EXPECT_STREQ(scalide_message(context.handle), "add.y: a run writes this array, so the strides must give each element its own memory, "
                                                  "got strides [4, 1]. Pass an array whose rows do not overlap.");
    EXPECT_EQ(scalide_bind(context.handle, &plan.program, zero.arrays.data(), 3, &refused.handle), SCALIDE_INVALID_ARGUMENT);
    zero.arrays[2].stride[1] = INT64_MIN;
    EXPECT_EQ(scalide_bind(context.handle, &plan.program, zero.arrays.data(), 3, &refused.handle), SCALIDE_INVALID_ARGUMENT);
    EXPECT_STREQ(scalide_message(context.handle), "add.y: the strides must be small enough for addresses in 64 bits, got other strides. "
                                                  "Count strides in elements.");
}

TEST(views_of_a_binding, may_be_blocks_of_one_array) {
    Context context(1);
    const AddPlan plan({4, 6});
    std::vector<float> matrix(4 * 18);
    const int64_t extents[] = {4, 6};
    Trio trio({4, 6}, {18, 1}, {18, 1});
    const auto bind_at = [&](int64_t x, int64_t w, int64_t y, int64_t step) {
        const int64_t begins[] = {x, w, y};
        for (size_t i = 0; i < 3; ++i) {
            trio.arrays[i] = scalide_dense_array(matrix.data() + begins[i], nullptr, SCALIDE_F32, 2, extents);
            trio.arrays[i].stride[0] = 18;
            trio.arrays[i].stride[1] = step;
        }
        Bound binding;
        const scalide_status status = scalide_bind(context.handle, &plan.program, trio.arrays.data(), 3, &binding.handle);
        EXPECT_TRUE(status != SCALIDE_OK || scalide_run(binding.handle) == SCALIDE_OK);
        return status;
    };
    std::iota(matrix.begin(), matrix.end(), 0.0F);
    EXPECT_EQ(bind_at(0, 6, 12, 1), SCALIDE_OK) << scalide_message(context.handle);
    EXPECT_EQ(matrix[12 + 18], 2.0F * 18 + 24);
    EXPECT_EQ(bind_at(0, 1, 2, 3), SCALIDE_OK) << scalide_message(context.handle);
    EXPECT_EQ(bind_at(0, 6, 11, 1), SCALIDE_INVALID_ARGUMENT);
    EXPECT_STREQ(scalide_message(context.handle), "add.w: a run writes this memory, but it overlaps with y. Pass separate memory.");
    EXPECT_EQ(bind_at(0, 6, 13, 1), SCALIDE_INVALID_ARGUMENT) << "the last row of y ends in the next row of x";
}

TEST(views_of_a_binding, are_copied_from_memory_that_is_aligned_to_an_element) {
    Context context(1);
    const AddPlan plan({3, 4});
    Trio trio({3, 4}, {9, 1}, {7, 1});
    trio.w = View({3, 4}, {6, 1}); // an inout
    trio.arrays[1] = trio.w.array;
    Bound binding;
    ASSERT_EQ(scalide_bind(context.handle, &plan.program, trio.arrays.data(), 3, &binding.handle), SCALIDE_OK)
        << scalide_message(context.handle);
    run_and_compare(binding.handle, trio.x, trio.w, trio.y);
    trio.arrays[0].data = static_cast<char *>(trio.arrays[0].data) + 2;
    Bound refused;
    EXPECT_EQ(scalide_bind(context.handle, &plan.program, trio.arrays.data(), 3, &refused.handle), SCALIDE_INVALID_ARGUMENT);
    EXPECT_NE(std::string(scalide_message(context.handle)).find("add.x: data must be aligned to 4 bytes"), std::string::npos);
}

TEST(views_of_a_binding, leak_nothing_without_memory) {
    const AddPlan plan({3, 5}, 1);
    Context context(1);
    const int before = allocations_live;
    int failed = 0;
    scalide_status status = SCALIDE_OUT_OF_MEMORY;
    for (; status == SCALIDE_OUT_OF_MEMORY; ++failed) {
        ASSERT_LT(failed, 20);
        Trio trio({3, 5}, {9, 1}, {7, 1});
        trio.w = View({3, 5}, {6, 1});
        trio.arrays[1] = trio.w.array;
        scalide_binding *binding = nullptr;
        allocations_made = 0;
        allocation_to_fail = failed;
        status = scalide_bind(context.handle, &plan.program, trio.arrays.data(), 3, &binding);
        const auto ignore = [](void *, const scalide_traced *, const scalide_array *) {};
        if (status == SCALIDE_OK) status = scalide_run_traced(binding, ignore, nullptr);
        allocation_to_fail = -1;
        scalide_binding_destroy(binding);
        EXPECT_EQ(allocations_live, before) << failed;
    }
    EXPECT_EQ(status, SCALIDE_OK);
    EXPECT_GE(failed, 5) << "the binding, its layout, the work of the arena, strides, the arena, and the copy of the trace";
}

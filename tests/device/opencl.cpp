// device.opencl.*: compares plans on an OpenCL device with the same plans on the CPU. Skipped without a driver.
#include "elementwise.h"
#include "elementwise_cpu.h"
#include "elementwise_cuda.h"
#include "elementwise_opencl.h"
#include <map>

using namespace scalide::test;

namespace {

class opencl : public testing::Test {
protected:
    void SetUp() override {
        const Context context(SCALIDE_OPENCL);
        if (context.status == SCALIDE_NO_DEVICE) GTEST_SKIP() << context.message;
        ASSERT_EQ(context.status, SCALIDE_OK) << context.message;
    }
};

struct Shown {
    std::map<std::string, std::vector<unsigned char>> buffers;
    static void record(void *user, const scalide_traced *buffer, const scalide_array *array) {
        size_t bytes = scalide_dtype_size(array->dtype);
        for (int32_t i = 0; i < array->rank; i++) bytes *= static_cast<size_t>(array->extent[i]);
        const auto *data = static_cast<const unsigned char *>(array->data);
        static_cast<Shown *>(user)->buffers[buffer->name].assign(data, data + bytes);
    }
};

Shown trace(int32_t device, const scalide_program *program) {
    const Context context(device);
    Elementwise arrays(context.handle, 3);
    scalide_binding *binding = nullptr;
    EXPECT_EQ(arrays.bind(program, &binding), SCALIDE_OK) << scalide_message(context.handle);
    Shown shown;
    EXPECT_EQ(scalide_run_traced(binding, Shown::record, &shown), SCALIDE_OK) << scalide_message(context.handle);
    scalide_binding_destroy(binding);
    return shown;
}

} // namespace

TEST_F(opencl, results_are_those_of_the_cpu) {
    for (const int64_t b : {1, 7, 64}) {
        const auto on_device = run(SCALIDE_OPENCL, elementwise_opencl_program(), b, 2);
        EXPECT_EQ(on_device, run(SCALIDE_CPU, elementwise_cpu_program(), b, 2)) << b;
    }
}

TEST_F(opencl, no_elements_are_no_launches) {
    EXPECT_EQ(run(SCALIDE_OPENCL, elementwise_opencl_program(), 0, 2), run(SCALIDE_CPU, elementwise_cpu_program(), 0, 2));
}

TEST_F(opencl, a_trace_shows_what_the_cpu_shows) {
    const Shown shown = trace(SCALIDE_OPENCL, elementwise_opencl_program());
    EXPECT_GT(shown.buffers.size(), 4u);
    EXPECT_EQ(shown.buffers, trace(SCALIDE_CPU, elementwise_cpu_program()).buffers);
}

TEST_F(opencl, a_profile_waits_for_each_step) {
    const Context context(SCALIDE_OPENCL);
    Elementwise arrays(context.handle, 3);
    scalide_binding *binding = nullptr;
    ASSERT_EQ(arrays.bind(elementwise_opencl_program(), &binding), SCALIDE_OK) << scalide_message(context.handle);
    std::vector<scalide_step_profile> steps(scalide_step_count(binding));
    ASSERT_EQ(scalide_profile(binding, 2, steps.data(), steps.size()), SCALIDE_OK) << scalide_message(context.handle);
    for (const scalide_step_profile &step : steps) {
        EXPECT_TRUE(step.seconds > 0 && step.seconds < 1e6);
        EXPECT_GT(step.bytes, 0u);
    }
    scalide_binding_destroy(binding);
}

TEST_F(opencl, other_arrays_take_the_place_of_arguments) {
    Context context(SCALIDE_OPENCL);
    Elementwise first(context.handle, 5, 1), second(context.handle, 5, 2), expected(context.handle, 5, 2);
    scalide_binding *binding = nullptr, *own = nullptr;
    ASSERT_EQ(first.bind(elementwise_opencl_program(), &binding), SCALIDE_OK);
    ASSERT_EQ(scalide_run(binding), SCALIDE_OK);
    const auto before = first.results();
    ASSERT_EQ(scalide_set_arguments(binding, second.arrays.data(), second.arrays.size()), SCALIDE_OK) << scalide_message(context.handle);
    ASSERT_EQ(scalide_run(binding), SCALIDE_OK);
    ASSERT_EQ(expected.bind(elementwise_opencl_program(), &own), SCALIDE_OK);
    ASSERT_EQ(scalide_run(own), SCALIDE_OK);
    EXPECT_EQ(second.results(), expected.results());
    EXPECT_EQ(first.results(), before);
    EXPECT_NE(before, expected.results());
    scalide_binding_destroy(own);
    scalide_binding_destroy(binding);
}

TEST_F(opencl, contexts_are_independent) {
    Context one(SCALIDE_OPENCL), other(SCALIDE_OPENCL);
    Elementwise first(one.handle, 9), second(other.handle, 9);
    scalide_binding *a = nullptr, *b = nullptr;
    ASSERT_EQ(first.bind(elementwise_opencl_program(), &a), SCALIDE_OK);
    ASSERT_EQ(second.bind(elementwise_opencl_program(), &b), SCALIDE_OK);
    ASSERT_EQ(scalide_run(a), SCALIDE_OK);
    ASSERT_EQ(scalide_run(b), SCALIDE_OK);
    scalide_binding_destroy(a);
    ASSERT_EQ(scalide_run(b), SCALIDE_OK);
    EXPECT_EQ(second.results(), run(SCALIDE_CPU, elementwise_cpu_program(), 9, 2));
    scalide_binding_destroy(b);
}

TEST_F(opencl, scalars_are_read_after_a_run) {
    Context context(SCALIDE_OPENCL);
    Elementwise arrays(context.handle, 2);
    scalide_binding *binding = nullptr;
    ASSERT_EQ(arrays.bind(elementwise_opencl_program(), &binding), SCALIDE_OK);
    ASSERT_EQ(scalide_run(binding), SCALIDE_OK);
    float s;
    double t;
    ASSERT_EQ(scalide_copy_out(context.handle, &s, arrays.arrays[3].data, sizeof s), SCALIDE_OK);
    ASSERT_EQ(scalide_read_scalar(binding, "t", &t), SCALIDE_OK) << scalide_message(context.handle);
    EXPECT_EQ(static_cast<float>(t), s * s);
    scalide_binding_destroy(binding);
}

TEST_F(opencl, there_are_no_graphs) {
    Context context(SCALIDE_OPENCL);
    Elementwise arrays(context.handle, 2);
    scalide_binding *binding = nullptr;
    ASSERT_EQ(arrays.bind(elementwise_opencl_program(), &binding), SCALIDE_OK);
    EXPECT_EQ(scalide_capture(binding), SCALIDE_UNSUPPORTED);
    EXPECT_STREQ(
        scalide_message(context.handle),
        "elementwise_opencl: device opencl does not support graphs, so a run cannot be captured. Use scalide_run without scalide_capture.");
    EXPECT_EQ(scalide_run(binding), SCALIDE_OK);
    scalide_binding_destroy(binding);
}

TEST_F(opencl, programs_run_on_their_own_device_only) {
    Context device(SCALIDE_OPENCL), host(SCALIDE_CPU);
    Elementwise on_device(device.handle, 2), on_host(host.handle, 2);
    scalide_binding *binding = nullptr;
    EXPECT_EQ(on_device.bind(elementwise_cpu_program(), &binding), SCALIDE_WRONG_DEVICE);
    EXPECT_STREQ(scalide_message(device.handle), "elementwise_cpu: the context must be for cpu (the program's target), got opencl. Create "
                                                 "it with this device, or build the program for opencl.");
    EXPECT_EQ(on_host.bind(elementwise_opencl_program(), &binding), SCALIDE_WRONG_DEVICE);
    EXPECT_EQ(on_device.bind(elementwise_cuda_program(), &binding), SCALIDE_WRONG_DEVICE);
    EXPECT_EQ(binding, nullptr);
}

TEST_F(opencl, a_device_that_is_not_there_is_refused) {
    const Context context(SCALIDE_OPENCL, nullptr, 1000);
    EXPECT_EQ(context.status, SCALIDE_NO_DEVICE);
    EXPECT_EQ(context.handle, nullptr);
    EXPECT_NE(context.message.find("the number of OpenCL devices, 1, got 1000."), std::string::npos) << context.message;
}

TEST_F(opencl, memory_that_nobody_has_is_a_status) {
    Context context(SCALIDE_OPENCL);
    void *memory = &context;
    EXPECT_EQ(scalide_allocate(context.handle, size_t(1) << 60, &memory), SCALIDE_OUT_OF_MEMORY);
    EXPECT_EQ(memory, nullptr);
    EXPECT_STREQ(scalide_message(context.handle),
                 "scalide_allocate: clSVMAlloc failed: CL_MEM_OBJECT_ALLOCATION_FAILURE. Bind smaller arrays, or release memory.");
    EXPECT_EQ(scalide_synchronise(context.handle), SCALIDE_OK);
}

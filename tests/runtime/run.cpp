#include "fixture.h"
#include "halide_hooks.h"
#include <string>

using namespace scalide::test;

namespace {

struct Binding {
    scalide_binding *handle = nullptr;
    ~Binding() { scalide_binding_destroy(handle); }
};

} // namespace

TEST(runtime, runs_a_program) {
    Context context;
    Sample sample(300);
    std::vector<float> expected;
    double total = 0;
    for (size_t i = 0; i < sample.y.size(); ++i) total += expected.emplace_back(sample.expected_y(i));
    Binding binding;
    ASSERT_EQ(bind(context, sample_program(), sample, &binding.handle), SCALIDE_OK) << scalide_message(context.handle);
    ASSERT_EQ(scalide_run(binding.handle), SCALIDE_OK) << scalide_message(context.handle);
    EXPECT_EQ(sample.y, expected);
    EXPECT_EQ(sample.mean, static_cast<float>(total / 300));
    EXPECT_EQ(sample.w, (std::array<float, 4>{2, 4, 6, 8}));
    EXPECT_EQ(sample.w_scale, 1.0f);
}

TEST(runtime, answers_questions) {
    Context context;
    Sample sample(6);
    Binding binding;
    ASSERT_EQ(bind(context, sample_program(), sample, &binding.handle), SCALIDE_OK);
    ASSERT_EQ(scalide_run(binding.handle), SCALIDE_OK);
    EXPECT_STREQ(scalide_program_name(sample_program()), "sample");
    EXPECT_STREQ(scalide_program_target(sample_program()), "x86-64-linux-sse41");
    EXPECT_STREQ(scalide_program_numerics(sample_program()), "name: plain");
    EXPECT_EQ(scalide_argument_count(sample_program()), 4u);
    EXPECT_EQ(scalide_find_argument(sample_program(), "y"), 2);
    EXPECT_EQ(scalide_find_argument(sample_program(), "z"), -1);
    EXPECT_EQ(scalide_arena_bytes(binding.handle), 6 * sizeof(float));
    EXPECT_EQ(scalide_symbol_value(binding.handle, "b"), 6);
    EXPECT_EQ(scalide_symbol_value(binding.handle, "c"), -1);
    scalide_argument_info info;
    ASSERT_EQ(scalide_describe_argument(sample_program(), 1, &info), SCALIDE_OK);
    EXPECT_STREQ(info.name, "w");
    EXPECT_TRUE(info.dtype == SCALIDE_F32 && info.rank == 1 && info.role == SCALIDE_INOUT && info.scaled == 1);
    EXPECT_EQ(scalide_describe_argument(sample_program(), 4, &info), SCALIDE_INVALID_ARGUMENT);
}

TEST(runtime, reads_scalars_by_name) {
    Context context;
    Sample sample(6);
    Binding binding;
    ASSERT_EQ(bind(context, sample_program(), sample, &binding.handle), SCALIDE_OK);
    ASSERT_EQ(scalide_run(binding.handle), SCALIDE_OK);
    double total, scale;
    ASSERT_EQ(scalide_read_scalar(binding.handle, "total", &total), SCALIDE_OK);
    ASSERT_EQ(scalide_read_scalar(binding.handle, "w.scale", &scale), SCALIDE_OK);
    EXPECT_EQ(static_cast<float>(total / 6), sample.mean);
    EXPECT_EQ(scale, 1.0);
    EXPECT_EQ(scalide_read_scalar(binding.handle, "h", &total), SCALIDE_INVALID_ARGUMENT);
    EXPECT_STREQ(scalide_message(context.handle), "program 'sample' has no scalar buffer 'h' (f64, f32, bool or an integer of at most 32 "
                                                  "bits). The manifest of the build (JSON) lists the buffers.");
}

TEST(runtime, traces_each_buffer_when_it_is_written) {
    Context context;
    Sample sample(6);
    Binding binding;
    ASSERT_EQ(bind(context, sample_program(), sample, &binding.handle), SCALIDE_OK);
    std::string seen;
    const auto record = [](void *user, const scalide_traced *buffer, const scalide_array *array) {
        constexpr const char *parts[] = {"", " data", " scale"};
        std::string &text = *static_cast<std::string *>(user);
        text += buffer->tensor + std::string(parts[buffer->part]) + "[" + (array->rank > 0 ? std::to_string(array->extent[0]) : "") + "] ";
    };
    ASSERT_EQ(scalide_run_traced(binding.handle, record, &seen), SCALIDE_OK);
    EXPECT_EQ(seen, "y[6] h[6] total[] w data[4] w scale[] mean[] ");
}

TEST(runtime, takes_another_array_in_place) {
    Context context;
    Sample sample(6), other(6);
    for (float &value : other.x) value += 1;
    Binding binding;
    ASSERT_EQ(bind(context, sample_program(), sample, &binding.handle), SCALIDE_OK);
    const float first = other.expected_y(0);
    ASSERT_EQ(scalide_set_argument(binding.handle, 0, &other.arrays[0]), SCALIDE_OK);
    ASSERT_EQ(scalide_set_argument(binding.handle, 1, &other.arrays[1]), SCALIDE_OK);
    ASSERT_EQ(scalide_run(binding.handle), SCALIDE_OK);
    EXPECT_EQ(sample.y[0], first);
    EXPECT_EQ(other.w_scale, 1.0f);
    EXPECT_EQ(sample.w_scale, 0.5f);
}

TEST(runtime, runs_on_another_set_of_arrays) {
    Context context;
    Sample sample(6), other(6), larger(8);
    Binding binding;
    ASSERT_EQ(bind(context, sample_program(), sample, &binding.handle), SCALIDE_OK);
    other.w_scale = 2;
    const float first = other.expected_y(0);
    EXPECT_EQ(scalide_set_arguments(binding.handle, larger.arrays.data(), 4), SCALIDE_INVALID_ARGUMENT);
    EXPECT_EQ(scalide_set_arguments(binding.handle, other.arrays.data(), 3), SCALIDE_INVALID_ARGUMENT);
    auto overlapping = other.arrays;
    overlapping[3].data = other.y.data();
    EXPECT_EQ(scalide_set_arguments(binding.handle, overlapping.data(), 4), SCALIDE_INVALID_ARGUMENT);
    ASSERT_EQ(scalide_set_arguments(binding.handle, other.arrays.data(), 4), SCALIDE_OK);
    ASSERT_EQ(scalide_run(binding.handle), SCALIDE_OK);
    EXPECT_EQ(other.y[0], first);
    EXPECT_EQ(other.w_scale, 4.0f);
    EXPECT_EQ(sample.w_scale, 0.5f);
}

TEST(runtime, keeps_the_old_array_when_the_new_one_is_wrong) {
    Context context;
    Sample sample(6), other(8);
    Binding binding;
    ASSERT_EQ(bind(context, sample_program(), sample, &binding.handle), SCALIDE_OK);
    EXPECT_EQ(scalide_set_argument(binding.handle, 0, &other.arrays[0]), SCALIDE_INVALID_ARGUMENT);
    EXPECT_STREQ(scalide_message(context.handle), "sample.x: extent 0 must be 6, got 8. Pass an array of shape [b, 4] with b = 6.");
    EXPECT_EQ(scalide_set_argument(binding.handle, 4, &other.arrays[0]), SCALIDE_INVALID_ARGUMENT);
    EXPECT_STREQ(scalide_message(context.handle),
                 "sample: the argument index must be less than 4, got 4. Find it by name with scalide_find_argument.");
    const float first = sample.expected_y(0);
    ASSERT_EQ(scalide_run(binding.handle), SCALIDE_OK);
    EXPECT_EQ(sample.y[0], first);
}

TEST(runtime, shapes_outputs) {
    Context context;
    Sample sample(6);
    auto arrays = sample.arrays;
    for (size_t i : {2, 3}) arrays[i] = scalide_array{};
    ASSERT_EQ(scalide_shape_outputs(context.handle, sample_program(), arrays.data(), arrays.size()), SCALIDE_OK);
    EXPECT_TRUE(arrays[2].dtype == SCALIDE_F32 && arrays[2].rank == 1 && arrays[2].extent[0] == 6 && arrays[2].stride[0] == 1);
    EXPECT_TRUE(arrays[3].dtype == SCALIDE_F32 && arrays[3].rank == 0);
}

// Returns the target of the program that a binding runs, or the message of scalide_bind. The sample has `main`, and variants for the
// others.
std::string chosen(const char *main, const std::vector<const char *> &targets) {
    std::vector<scalide_program> programs(targets.size(), *sample_program());
    std::vector<scalide_variant> variants;
    for (size_t i = 0; i < targets.size(); ++i) {
        programs[i].target = targets[i];
        variants.push_back({0, &programs[i], 0, {0}, {0}});
    }
    scalide_program program = *sample_program();
    program.target = main;
    program.variants = variants.data();
    program.variant_count = static_cast<int32_t>(variants.size());
    Context context;
    Sample sample(6);
    const float expected = sample.expected_y(1);
    Binding binding;
    const scalide_status status = bind(context, &program, sample, &binding.handle);
    if (status != SCALIDE_OK) {
        EXPECT_EQ(status, SCALIDE_UNSUPPORTED_CPU);
        return scalide_message(context.handle);
    }
    EXPECT_EQ(scalide_run(binding.handle), SCALIDE_OK);
    EXPECT_EQ(sample.y[1], expected);
    return scalide_program_target(scalide_binding_program(binding.handle));
}

TEST(runtime, takes_the_last_program_whose_target_the_cpu_supports) {
    const char *first = "x86-64-linux", *wider = "x86-64-linux-sse41", *later = "x86-64-linux-sse41-later", *latest = "x86-64-linux-latest";
    EXPECT_EQ(chosen(first, {}), first);
    EXPECT_EQ(chosen(first, {wider}), wider);
    EXPECT_EQ(chosen(first, {wider, later}), wider);
    EXPECT_EQ(chosen(first, {later}), first);
    EXPECT_EQ(chosen(later, {wider, latest}), wider);
    EXPECT_EQ(chosen(later, {latest}),
              "sample: the CPU must have all features of the target x86-64-linux-sse41-later, but it has no later. Build "
              "the program for this CPU, or one library for several CPUs: scalide build --target x86-64-v2,x86-64-v3 (CMake: TARGETS).");
}

TEST(runtime, a_failure_is_sticky) {
    Context context;
    Sample sample(6);
    scalide_program program = *sample_program();
    std::vector<scalide_step> steps(program.steps, program.steps + program.step_count);
    static int calls;
    calls = 0;
    steps[1].kernel = [](void **) { return ++calls, -7; };
    program.steps = steps.data();
    Binding binding;
    ASSERT_EQ(bind(context, &program, sample, &binding.handle), SCALIDE_OK);
    EXPECT_EQ(scalide_run(binding.handle), SCALIDE_KERNEL_FAILED);
    EXPECT_STREQ(scalide_message(context.handle), "sample.reduce: the kernel failed with error -7.");
    EXPECT_EQ(scalide_run(binding.handle), SCALIDE_KERNEL_FAILED);
    EXPECT_EQ(calls, 1);
    EXPECT_EQ(sample.w_scale, 0.5f) << "later steps must not run";
}

TEST(runtime, reports_errors_of_kernels) {
    Context context;
    Sample sample(6);
    scalide_program program = *sample_program();
    std::vector<scalide_step> steps(program.steps, program.steps + program.step_count);
    steps[0].kernel = [](void **arguments) {
        const auto fail = [](void *user_context, int, uint8_t *) {
            halide_error(user_context, "index out of range");
            return 0;
        };
        return halide_do_par_for(*static_cast<void **>(arguments[0]), fail, 0, 100, nullptr) * 0;
    };
    program.steps = steps.data();
    Binding binding;
    ASSERT_EQ(bind(context, &program, sample, &binding.handle), SCALIDE_OK);
    EXPECT_EQ(scalide_run(binding.handle), SCALIDE_KERNEL_FAILED);
    EXPECT_STREQ(scalide_message(context.handle), "sample.rows: index out of range");
}

TEST(runtime, leaves_a_kernel_that_gets_no_memory) {
    Context context;
    Sample sample(64);
    scalide_program program = *sample_program();
    std::vector<scalide_step> steps(program.steps, program.steps + program.step_count);
    steps[0].kernel = [](void **arguments) {
        const auto greedy = [](void *user_context, int, uint8_t *) {
            static_cast<char *>(halide_malloc(user_context, SIZE_MAX / 2))[0] = 1;
            return 0;
        };
        return halide_do_par_for(*static_cast<void **>(arguments[0]), greedy, 0, 64, nullptr) * 0;
    };
    program.steps = steps.data();
    Binding binding, good;
    ASSERT_EQ(bind(context, &program, sample, &binding.handle), SCALIDE_OK);
    EXPECT_EQ(scalide_run(binding.handle), SCALIDE_OUT_OF_MEMORY);
    EXPECT_STREQ(scalide_message(context.handle),
                 "sample.rows: out of memory: cannot allocate scratch memory of the kernel. Bind smaller arrays, or use fewer threads.");
    ASSERT_EQ(bind(context, sample_program(), sample, &good.handle), SCALIDE_OK);
    EXPECT_EQ(scalide_run(good.handle), SCALIDE_OK) << "the context is still good";
}

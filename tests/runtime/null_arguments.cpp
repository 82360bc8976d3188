#include "fixture.h"
#include "scalide/checkpoints.h"
#include "scalide/statistics.h"
#include <functional>
#include <gtest/gtest.h>
#include <string>

// What the header promises of NULL.

using namespace scalide::test;

namespace {

/// A context and a binding, whose functions the cases call.
struct Handles {
    Context context{1};
    Sample sample;
    scalide_array *arrays = sample.arrays.data();
    scalide_binding *binding = nullptr, *made = nullptr;
    Handles() { EXPECT_EQ(bind(context, sample_program(), sample, &binding), SCALIDE_OK); }
    Handles(const Handles &) = delete;
    Handles &operator=(const Handles &) = delete;
    ~Handles() { scalide_binding_destroy(binding); }
};

/// A call with a wrong pointer or index, and the message that the context then has.
struct Wrong {
    std::string message;
    std::function<scalide_status(Handles &)> call;
};

const scalide_program *const program = sample_program();
scalide_constants *no_constants = nullptr;
scalide_statistics *no_statistics = nullptr;
const int64_t six = 6;

const Wrong wrong_calls[] = {
    {"scalide_bind: program must not be NULL.", [](Handles &h) { return scalide_bind(h.context.handle, nullptr, h.arrays, 4, &h.made); }},
    {"scalide_bind: arrays must not be NULL.", [](Handles &h) { return scalide_bind(h.context.handle, program, nullptr, 4, &h.made); }},
    {"scalide_bind: binding must not be NULL.", [](Handles &h) { return scalide_bind(h.context.handle, program, h.arrays, 4, nullptr); }},
    {"scalide_check_signature: program must not be NULL.",
     [](Handles &h) { return scalide_check_signature(h.context.handle, nullptr, 0); }},
    {"scalide_bind_constants: constants must not be NULL.",
     [](Handles &h) { return scalide_bind_constants(h.context.handle, program, h.arrays, 4, nullptr, &h.made); }},
    {"scalide_bind_like: binding must not be NULL.",
     [](Handles &h) { return scalide_bind_like(h.context.handle, nullptr, h.arrays, 4, &h.made); }},
    {"scalide_bind_like: arrays must not be NULL.",
     [](Handles &h) { return scalide_bind_like(h.context.handle, h.binding, nullptr, 4, &h.made); }},
    {"scalide_bind_like: result must not be NULL.",
     [](Handles &h) { return scalide_bind_like(h.context.handle, h.binding, h.arrays, 4, nullptr); }},
    {"scalide_prepare: program must not be NULL.",
     [](Handles &h) { return scalide_prepare(h.context.handle, nullptr, h.arrays, 4, &no_constants); }},
    {"scalide_prepare: constants must not be NULL.",
     [](Handles &h) { return scalide_prepare(h.context.handle, program, h.arrays, 4, nullptr); }},
    {"scalide_set_argument: array must not be NULL.", [](Handles &h) { return scalide_set_argument(h.binding, 0, nullptr); }},
    {"scalide_set_arguments: arrays must not be NULL.", [](Handles &h) { return scalide_set_arguments(h.binding, nullptr, 4); }},
    {"scalide_statistics_create: arrays must not be NULL.",
     [](Handles &h) { return scalide_statistics_create(h.binding, nullptr, 4, nullptr, &no_statistics); }},
    {"scalide_statistics_create: statistics must not be NULL.",
     [](Handles &h) { return scalide_statistics_create(h.binding, h.arrays, 4, nullptr, nullptr); }},
    {"scalide_statistics_prepare: program must not be NULL.",
     [](Handles &h) { return scalide_statistics_prepare(h.context.handle, nullptr, h.arrays, 4, &no_constants); }},
    {"scalide_run_checked: first must not be NULL.", [](Handles &h) { return scalide_run_checked(h.binding, nullptr); }},
    {"scalide_profile: steps must not be NULL.", [](Handles &h) { return scalide_profile(h.binding, 1, nullptr, 3); }},
    {"scalide_describe_step: info must not be NULL.", [](Handles &h) { return scalide_describe_step(h.binding, 0, nullptr); }},
    {"sample: the step index must be less than 3, got 3.",
     [](Handles &h) {
         scalide_step_info info;
         return scalide_describe_step(h.binding, 3, &info);
     }},
    {"scalide_read_scalar: buffer_name must not be NULL.",
     [](Handles &h) {
         double value;
         return scalide_read_scalar(h.binding, nullptr, &value);
     }},
    {"scalide_read_scalar: value must not be NULL.", [](Handles &h) { return scalide_read_scalar(h.binding, "total", nullptr); }},
    {"scalide_shape_outputs: program must not be NULL.",
     [](Handles &h) { return scalide_shape_outputs(h.context.handle, nullptr, h.arrays, 4); }},
    {"scalide_shape_outputs: arrays must not be NULL.",
     [](Handles &h) { return scalide_shape_outputs(h.context.handle, program, nullptr, 4); }},
    {"scalide_shape_arguments: values must not be NULL.",
     [](Handles &h) { return scalide_shape_arguments(h.context.handle, program, nullptr, 1, h.arrays, 4); }},
    {"scalide_shape_arguments: arrays must not be NULL.",
     [](Handles &h) { return scalide_shape_arguments(h.context.handle, program, &six, 1, nullptr, 4); }},
    {"scalide_initial_state: program must not be NULL.",
     [](Handles &h) { return scalide_initial_state(h.context.handle, nullptr, h.arrays, 4); }},
    {"scalide_load: path must not be NULL.",
     [](Handles &h) {
         scalide_library *library;
         return scalide_load(h.context.handle, nullptr, &library);
     }},
    {"scalide_load: library must not be NULL.", [](Handles &h) { return scalide_load(h.context.handle, "x.so", nullptr); }},
    {"scalide_allocate: memory must not be NULL.", [](Handles &h) { return scalide_allocate(h.context.handle, 8, nullptr); }},
    {"scalide_copy_in: to must not be NULL.", [](Handles &h) { return scalide_copy_in(h.context.handle, nullptr, &six, 8); }},
    {"scalide_copy_out: from must not be NULL.",
     [](Handles &h) {
         int64_t to;
         return scalide_copy_out(h.context.handle, &to, nullptr, 8);
     }},
    {"scalide_convert: from must not be NULL.", [](Handles &h) { return scalide_convert(h.context.handle, nullptr, h.arrays); }},
    {"scalide_convert: to must not be NULL.", [](Handles &h) { return scalide_convert(h.context.handle, h.arrays, nullptr); }},
    {"scalide_library_program: library must not be NULL.",
     [](Handles &h) { return scalide_library_program(h.context.handle, nullptr, "x") ? SCALIDE_OK : SCALIDE_INVALID_ARGUMENT; }},
};

TEST(null_arguments, replace_the_message_of_an_earlier_failure) {
    Handles handles;
    for (const Wrong &wrong : wrong_calls) {
        scalide_library *library = nullptr;
        ASSERT_EQ(scalide_load(handles.context.handle, "/nowhere", &library), SCALIDE_FILE_ERROR);
        EXPECT_EQ(wrong.call(handles), SCALIDE_INVALID_ARGUMENT) << wrong.message;
        EXPECT_EQ(scalide_message(handles.context.handle), wrong.message);
        EXPECT_EQ(handles.made, nullptr);
    }
}

TEST(null_arguments, of_scalide_context_create_have_a_message) {
    char message[100] = "";
    scalide_options options = {};
    options.struct_size = sizeof(options);
    options.message = message;
    options.message_size = sizeof(message);
    EXPECT_EQ(scalide_context_create(&options, nullptr), SCALIDE_INVALID_ARGUMENT);
    EXPECT_STREQ(message, "scalide_context_create: context must not be NULL.");
}

TEST(null_arguments, of_contexts) {
    void *memory = nullptr;
    scalide_library *library = nullptr;
    EXPECT_EQ(scalide_context_create(nullptr, nullptr), SCALIDE_INVALID_ARGUMENT);
    EXPECT_STREQ(scalide_message(nullptr), "there is no context");
    EXPECT_EQ(scalide_thread_count(nullptr), 0);
    EXPECT_EQ(scalide_context_device(nullptr), -1);
    EXPECT_EQ(scalide_context_device_name(nullptr), nullptr);
    EXPECT_EQ(scalide_allocate(nullptr, 8, &memory), SCALIDE_INVALID_ARGUMENT);
    EXPECT_EQ(scalide_copy_in(nullptr, memory, memory, 0), SCALIDE_INVALID_ARGUMENT);
    EXPECT_EQ(scalide_copy_out(nullptr, memory, memory, 0), SCALIDE_INVALID_ARGUMENT);
    EXPECT_EQ(scalide_synchronise(nullptr), SCALIDE_INVALID_ARGUMENT);
    EXPECT_EQ(scalide_load(nullptr, "library.so", &library), SCALIDE_INVALID_ARGUMENT);
    EXPECT_EQ(scalide_library_program(nullptr, nullptr, "name"), nullptr);
    scalide_release(nullptr, nullptr);
    scalide_library_close(nullptr);
    scalide_context_destroy(nullptr);
}

TEST(null_arguments, of_programs) {
    scalide_argument_info info;
    EXPECT_EQ(scalide_program_name(nullptr), nullptr);
    EXPECT_EQ(scalide_program_target(nullptr), nullptr);
    EXPECT_EQ(scalide_program_device(nullptr), -1);
    EXPECT_EQ(scalide_program_numerics(nullptr), nullptr);
    EXPECT_EQ(scalide_argument_count(nullptr), 0u);
    EXPECT_EQ(scalide_describe_argument(nullptr, 0, &info), SCALIDE_INVALID_ARGUMENT);
    EXPECT_EQ(scalide_describe_argument(sample_program(), 0, nullptr), SCALIDE_INVALID_ARGUMENT);
    EXPECT_EQ(scalide_find_argument(nullptr, "x"), -1);
    EXPECT_EQ(scalide_find_argument(sample_program(), nullptr), -1);
    EXPECT_EQ(scalide_shape_outputs(nullptr, sample_program(), nullptr, 0), SCALIDE_INVALID_ARGUMENT);
}

TEST(null_arguments, of_bindings) {
    scalide_step_info info;
    scalide_non_finite first;
    double value = 0;
    EXPECT_EQ(scalide_set_argument(nullptr, 0, nullptr), SCALIDE_INVALID_ARGUMENT);
    EXPECT_EQ(scalide_set_arguments(nullptr, nullptr, 0), SCALIDE_INVALID_ARGUMENT);
    EXPECT_EQ(scalide_run_traced(nullptr, nullptr, nullptr), SCALIDE_INVALID_ARGUMENT);
    EXPECT_EQ(scalide_run_checked(nullptr, &first), SCALIDE_INVALID_ARGUMENT);
    EXPECT_EQ(scalide_profile(nullptr, 1, nullptr, 0), SCALIDE_INVALID_ARGUMENT);
    EXPECT_EQ(scalide_capture(nullptr), SCALIDE_INVALID_ARGUMENT);
    EXPECT_EQ(scalide_step_count(nullptr), 0u);
    EXPECT_EQ(scalide_describe_step(nullptr, 0, &info), SCALIDE_INVALID_ARGUMENT);
    EXPECT_EQ(scalide_arena_bytes(nullptr), 0u);
    EXPECT_EQ(scalide_binding_program(nullptr), nullptr);
    EXPECT_EQ(scalide_symbol_value(nullptr, "b"), -1);
    EXPECT_EQ(scalide_read_scalar(nullptr, "loss", &value), SCALIDE_INVALID_ARGUMENT);
    scalide_binding_destroy(nullptr);
}

TEST(null_arguments, of_checkpoints) {
    char message[100], path[100];
    int64_t step = 0;
    size_t count = 0;
    scalide_safetensors *file = nullptr;
    const scalide_safetensors_content none = {}, no_tensors = {nullptr, 1, nullptr, 0}, no_metadata = {nullptr, 0, nullptr, 1};
    const auto is_refused = [&](scalide_status status, const char *pointer) {
        EXPECT_EQ(status, SCALIDE_INVALID_ARGUMENT);
        EXPECT_EQ(std::string(message), std::string(pointer) + " must not be NULL.");
    };
    is_refused(scalide_checkpoint_save(nullptr, 1, &none, nullptr, message, sizeof(message)), "folder");
    is_refused(scalide_checkpoint_save("x", 1, nullptr, nullptr, message, sizeof(message)), "content");
    is_refused(scalide_checkpoint_save("x", 1, &no_tensors, nullptr, message, sizeof(message)), "tensors");
    is_refused(scalide_checkpoint_save("x", 1, &no_metadata, nullptr, message, sizeof(message)), "metadata");
    is_refused(scalide_checkpoint_save_leaves("x", 1, nullptr, 1, '/', nullptr, message, sizeof(message)), "leaves");
    is_refused(scalide_checkpoint_steps(nullptr, nullptr, nullptr, 0, &count, message, sizeof(message)), "folder");
    is_refused(scalide_checkpoint_steps("x", nullptr, nullptr, 0, nullptr, message, sizeof(message)), "count");
    is_refused(scalide_checkpoint_steps("x", nullptr, nullptr, 1, &count, message, sizeof(message)), "steps");
    is_refused(scalide_checkpoint_latest(nullptr, nullptr, &step, message, sizeof(message)), "folder");
    is_refused(scalide_checkpoint_latest("x", nullptr, nullptr, message, sizeof(message)), "step");
    is_refused(scalide_checkpoint_path(nullptr, 1, nullptr, path, sizeof(path), nullptr, message, sizeof(message)), "folder");
    is_refused(scalide_checkpoint_path("x", 1, nullptr, nullptr, 0, nullptr, message, sizeof(message)), "path");
    is_refused(scalide_checkpoint_read(nullptr, 1, nullptr, &file, nullptr, message, sizeof(message)), "folder");
    is_refused(scalide_checkpoint_read("x", 1, nullptr, nullptr, nullptr, message, sizeof(message)), "file");
    is_refused(scalide_checkpoint_read_path(nullptr, &file, message, sizeof(message)), "path");
    is_refused(scalide_checkpoint_restore(nullptr, nullptr, nullptr, 0, message, sizeof(message)), "file");
    is_refused(scalide_msgpack_read(nullptr, '/', nullptr, message, sizeof(message)), "file");
    is_refused(scalide_msgpack_write(nullptr, nullptr, 0, '/', 0, message, sizeof(message)), "path");
    is_refused(scalide_msgpack_write("x", nullptr, 1, '/', 0, message, sizeof(message)), "leaves");
    EXPECT_EQ(scalide_binding_save(nullptr, "x", 1, nullptr, 0, nullptr), SCALIDE_INVALID_ARGUMENT);
    EXPECT_EQ(scalide_binding_restore(nullptr, "x", 1, nullptr, nullptr), SCALIDE_INVALID_ARGUMENT);
    EXPECT_EQ(scalide_msgpack_count(nullptr), 0u);
    EXPECT_EQ(scalide_msgpack_leaf(nullptr, 0), nullptr);
    scalide_msgpack_close(nullptr);
}

TEST(null_arguments, programs_without_statistics_say_so) {
    Handles h;
    const std::string message =
        "sample: the program was built without statistics. Build it with --statistics, or with a policy that has rows 'statistics'.";
    EXPECT_EQ(scalide_statistics_count(program), 0u);
    EXPECT_EQ(scalide_statistics_create(h.binding, h.arrays, 4, nullptr, &no_statistics), SCALIDE_UNSUPPORTED);
    EXPECT_EQ(scalide_message(h.context.handle), message);
    EXPECT_EQ(scalide_statistics_prepare(h.context.handle, program, h.arrays, 4, &no_constants), SCALIDE_UNSUPPORTED);
    EXPECT_EQ(scalide_message(h.context.handle), message);
    scalide_statistic_info info;
    EXPECT_EQ(scalide_describe_statistic(program, 0, &info), SCALIDE_INVALID_ARGUMENT);
    EXPECT_EQ(scalide_run_collecting(nullptr, 0), SCALIDE_INVALID_ARGUMENT);
    EXPECT_EQ(scalide_read_statistics(nullptr, nullptr, 0), SCALIDE_INVALID_ARGUMENT);
    EXPECT_EQ(scalide_statistics_step(nullptr), -1);
    scalide_statistics_destroy(nullptr);
}

TEST(null_arguments, of_files) {
    scalide_array array;
    scalide_safetensors *file = nullptr;
    EXPECT_EQ(scalide_safetensors_read(nullptr, &file, nullptr, 0), SCALIDE_INVALID_ARGUMENT);
    EXPECT_EQ(scalide_safetensors_read("file", nullptr, nullptr, 0), SCALIDE_INVALID_ARGUMENT);
    EXPECT_EQ(scalide_safetensors_map(nullptr, &file, nullptr, 0), SCALIDE_INVALID_ARGUMENT);
    EXPECT_EQ(scalide_safetensors_write(nullptr, nullptr, nullptr, 0), SCALIDE_INVALID_ARGUMENT);
    char message[100];
    const scalide_safetensors_content no_tensors = {nullptr, 1, nullptr, 0}, no_metadata = {nullptr, 0, nullptr, 1};
    scalide_safetensors_read(nullptr, &file, message, sizeof(message));
    EXPECT_STREQ(message, "path must not be NULL.");
    scalide_safetensors_map("file", nullptr, message, sizeof(message));
    EXPECT_STREQ(message, "file must not be NULL.");
    scalide_safetensors_write("file", nullptr, message, sizeof(message));
    EXPECT_STREQ(message, "content must not be NULL.");
    EXPECT_EQ(scalide_safetensors_write("file", &no_tensors, message, sizeof(message)), SCALIDE_INVALID_ARGUMENT);
    EXPECT_STREQ(message, "tensors must not be NULL.");
    EXPECT_EQ(scalide_safetensors_write("file", &no_metadata, message, sizeof(message)), SCALIDE_INVALID_ARGUMENT);
    EXPECT_STREQ(message, "metadata must not be NULL.");
    EXPECT_EQ(scalide_safetensors_count(nullptr), 0u);
    EXPECT_EQ(scalide_safetensors_tensor(nullptr, 0), nullptr);
    EXPECT_EQ(scalide_safetensors_find(nullptr, "x", &array), SCALIDE_INVALID_ARGUMENT);
    EXPECT_EQ(scalide_safetensors_skipped_count(nullptr), 0u);
    EXPECT_EQ(scalide_safetensors_skipped(nullptr, 0), nullptr);
    scalide_safetensors_explain(nullptr, nullptr, nullptr, 0);
    EXPECT_EQ(scalide_safetensors_metadata(nullptr, "author"), nullptr);
    EXPECT_EQ(scalide_safetensors_metadata_count(nullptr), 0u);
    EXPECT_EQ(scalide_safetensors_metadata_entry(nullptr, 0), nullptr);
    scalide_safetensors_close(nullptr);
    EXPECT_EQ(scalide_dense_array(nullptr, nullptr, SCALIDE_F32, 2, nullptr).extent[0], 0);
}

} // namespace

#include "fixture.h"
#include "scalide/safetensors.h"
#include <gtest/gtest.h>

// What the header promises of NULL.

namespace {

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

TEST(null_arguments, of_files) {
    scalide_array array;
    scalide_safetensors *file = nullptr;
    EXPECT_EQ(scalide_safetensors_read(nullptr, &file, nullptr, 0), SCALIDE_INVALID_ARGUMENT);
    EXPECT_EQ(scalide_safetensors_read("file", nullptr, nullptr, 0), SCALIDE_INVALID_ARGUMENT);
    EXPECT_EQ(scalide_safetensors_map(nullptr, &file, nullptr, 0), SCALIDE_INVALID_ARGUMENT);
    EXPECT_EQ(scalide_safetensors_write(nullptr, nullptr, nullptr, 0), SCALIDE_INVALID_ARGUMENT);
    EXPECT_EQ(scalide_safetensors_count(nullptr), 0u);
    EXPECT_EQ(scalide_safetensors_tensor(nullptr, 0), nullptr);
    EXPECT_EQ(scalide_safetensors_find(nullptr, "x", &array), SCALIDE_INVALID_ARGUMENT);
    EXPECT_EQ(scalide_safetensors_skipped_count(nullptr), 0u);
    EXPECT_EQ(scalide_safetensors_skipped(nullptr, 0), nullptr);
    scalide_safetensors_explain(nullptr, nullptr, nullptr, 0);
    EXPECT_EQ(scalide_safetensors_metadata(nullptr, "author"), nullptr);
    scalide_safetensors_close(nullptr);
    EXPECT_EQ(scalide_dense_array(nullptr, nullptr, SCALIDE_F32, 2, nullptr).extent[0], 0);
}

} // namespace

#include "allocation.h"
#include "fixture.h"
#include <string>

using namespace scalide::test;

TEST(runtime, loads_and_runs_a_program_of_a_shared_library) {
    Context context(2, 64);
    scalide_library *library = nullptr;
    ASSERT_EQ(scalide_load(context.handle, SCALIDE_SAMPLE_LIBRARY, &library), SCALIDE_OK) << scalide_message(context.handle);
    const scalide_program *program = scalide_library_program(context.handle, library, "sample");
    ASSERT_NE(program, nullptr) << scalide_message(context.handle);
    EXPECT_NE(program, sample_program());
    Sample sample(6);
    const float expected = sample.expected_y(5);
    scalide_binding *binding = nullptr;
    ASSERT_EQ(bind(context, program, sample, &binding), SCALIDE_OK) << scalide_message(context.handle);
    const int before = allocations_made;
    ASSERT_EQ(scalide_run(binding), SCALIDE_OK);
    EXPECT_EQ(sample.y[5], expected);
    EXPECT_GT(allocations_made, before) << "the library's kernels must take their scratch memory from this runtime";
    scalide_binding_destroy(binding);
    EXPECT_EQ(scalide_library_program(context.handle, library, "other"), nullptr);
    EXPECT_STREQ(scalide_message(context.handle),
                 "other: must be a program of the library, got no function other_program. Check the name.");
    EXPECT_EQ(scalide_library_program(context.handle, library, std::string(300, 'x').c_str()), nullptr);
    scalide_library_close(library);
}

TEST(runtime, refuses_what_is_no_shared_library) {
    Context context;
    scalide_library *library = nullptr;
    EXPECT_EQ(scalide_load(context.handle, "/no/such/library.so", &library), SCALIDE_FILE_ERROR);
    EXPECT_STREQ(
        scalide_message(context.handle),
        "/no/such/library.so: must be a shared library of programs, got the loader's error '/no/such/library.so: cannot open shared "
        "object file: No such file or directory'. Build it with scalide build.");
    EXPECT_EQ(library, nullptr);
}

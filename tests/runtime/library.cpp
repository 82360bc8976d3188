#include "allocation.h"
#include "fixture.h"
#include <cstdio>
#include <cstring>
#include <elf.h>
#include <fstream>
#include <sstream>
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

namespace {

/// What loading a file of this content says behind its path.
std::string loading(const std::string &content) {
    const std::string path = ::testing::TempDir() + "scalide_loading.so";
    std::ofstream(path, std::ios::binary) << content;
    Context context;
    scalide_library *library = nullptr;
    EXPECT_EQ(scalide_load(context.handle, path.c_str(), &library), SCALIDE_FILE_ERROR);
    EXPECT_EQ(library, nullptr);
    std::remove(path.c_str());
    return std::string(scalide_message(context.handle)).substr(path.size());
}

} // namespace

TEST(runtime, refuses_libraries_that_were_cut_or_are_of_another_machine) {
    std::stringstream whole;
    whole << std::ifstream(SCALIDE_SAMPLE_LIBRARY, std::ios::binary).rdbuf();
    const std::string library = whole.str();
    const std::string cut =
        ": must be a shared library for this machine, got a part of one (the file was cut). Build it with scalide build.";
    for (const size_t part : {2, 4}) EXPECT_EQ(loading(library.substr(0, library.size() / part)), cut);
    std::string wrapped = library; // the end of a segment, offset + bytes, is small again
    Elf64_Ehdr header;
    std::memcpy(&header, library.data(), sizeof(header));
    const uint64_t far = UINT64_MAX - 15;
    std::memcpy(&wrapped[header.e_phoff + offsetof(Elf64_Phdr, p_offset)], &far, sizeof(far));
    EXPECT_EQ(loading(wrapped), cut);
    std::string foreign = library;
    foreign[offsetof(Elf64_Ehdr, e_machine)] = static_cast<char>(EM_RISCV);
    EXPECT_EQ(loading(foreign).rfind(": must be a shared library for this machine, got one for riscv-64 in a process of ", 0), 0)
        << loading(foreign);
    EXPECT_NE(loading("no library").find("got the loader's error"), std::string::npos);
}

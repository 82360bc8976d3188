#include "allocation.h"
#include "fixture.h"
#include "support/folder.h"
#include <cstdio>
#include <cstring>
#include <elf.h>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

using namespace scalide::test;
namespace fs = std::filesystem;

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
    EXPECT_STREQ(scalide_message(context.handle), "the library has no program 'other' (function other_program). Check the name.");
    EXPECT_EQ(scalide_library_program(context.handle, library, std::string(300, 'x').c_str()), nullptr);
    scalide_library_close(library);
}

TEST(runtime, refuses_what_is_no_shared_library) {
    Context context;
    scalide_library *library = nullptr;
    EXPECT_EQ(scalide_load(context.handle, "/no/such/library.so", &library), SCALIDE_FILE_ERROR);
    EXPECT_STREQ(scalide_message(context.handle), "/no/such/library.so: cannot load this file: cannot open shared object file: No such "
                                                  "file or directory. Build it with 'scalide build --shared'.");
    EXPECT_EQ(library, nullptr);
}

namespace {

/// Returns the message after the path when a file with this content is loaded.
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
    const std::string cut = ": cannot load this file: the file is truncated. Build it with 'scalide build --shared'.";
    for (const size_t part : {2, 4}) EXPECT_EQ(loading(library.substr(0, library.size() / part)), cut);
    std::string wrapped = library; // the end of a segment, offset + bytes, is small again
    Elf64_Ehdr header;
    std::memcpy(&header, library.data(), sizeof(header));
    const uint64_t far = UINT64_MAX - 15;
    std::memcpy(&wrapped[header.e_phoff + offsetof(Elf64_Phdr, p_offset)], &far, sizeof(far));
    EXPECT_EQ(loading(wrapped), cut);
    std::string foreign = library;
    foreign[offsetof(Elf64_Ehdr, e_machine)] = static_cast<char>(EM_RISCV);
    EXPECT_EQ(loading(foreign).rfind(": cannot load this file: it is built for riscv-64, but this process runs on ", 0), 0)
        << loading(foreign);
    EXPECT_NE(loading("no library").find("cannot load this file: "), std::string::npos);
}

namespace {

std::string content_of(const std::string &path) {
    std::stringstream content;
    content << std::ifstream(path, std::ios::binary).rdbuf();
    return content.str();
}

/// The sample library with another text in its plan's field `numerics`, of the same length.
std::string rebuilt(const std::string &numerics) {
    std::string content = content_of(SCALIDE_SAMPLE_LIBRARY);
    const std::string old = sample_program()->numerics;
    EXPECT_EQ(numerics.size(), old.size());
    for (size_t at = content.find(old + '\0'); at != std::string::npos; at = content.find(old + '\0', at + 1))
        content.replace(at, old.size(), numerics);
    return content;
}

void write(const std::string &path, const std::string &content) { std::ofstream(path, std::ios::binary) << content; }

/// As `scalide build` publishes a file: another one of the same name.
void replace(const std::string &path, const std::string &content) {
    write(path + ".new", content);
    fs::rename(path + ".new", path);
}

/// Libraries loaded one after the other, all open until the end.
struct Loads {
    Context context{2, 64};
    std::vector<scalide_library *> libraries;

    ~Loads() {
        for (scalide_library *library : libraries) scalide_library_close(library);
    }
    const scalide_program *load(const std::string &path) {
        scalide_library *library = nullptr;
        EXPECT_EQ(scalide_load(context.handle, path.c_str(), &library), SCALIDE_OK) << scalide_message(context.handle);
        if (!library) return nullptr;
        libraries.push_back(library);
        return scalide_library_program(context.handle, library, "sample");
    }
    /// The program's numerics, when it also computes.
    std::string numerics(const scalide_program *program) {
        Sample sample(6);
        const float expected = sample.expected_y(5);
        scalide_binding *binding = nullptr;
        EXPECT_EQ(bind(context, program, sample, &binding), SCALIDE_OK) << scalide_message(context.handle);
        EXPECT_EQ(scalide_run(binding), SCALIDE_OK);
        EXPECT_EQ(sample.y[5], expected);
        scalide_binding_destroy(binding);
        return scalide_program_numerics(program);
    }
};

std::string other_numerics(char letter) { return std::string(std::strlen(sample_program()->numerics), letter); }

} // namespace

TEST(runtime, loads_a_new_file_of_the_same_path_beside_the_old_one) {
    const Folder folder;
    const std::string path = folder.file("step.so");
    Loads loads;
    std::vector<const scalide_program *> programs;
    for (const char letter : {'a', 'b', 'c'}) {
        replace(path, rebuilt(other_numerics(letter)));
        programs.push_back(loads.load(path));
    }
    for (size_t i = 0; i < 3; ++i) EXPECT_EQ(loads.numerics(programs[i]), other_numerics("abc"[i]));
    // A relative path, and another path of the same file.
    fs::create_hard_link(path, folder.file("link.so"));
    EXPECT_EQ(loads.numerics(loads.load(folder.file("link.so"))), other_numerics('c'));
    EXPECT_EQ(loads.numerics(loads.load(fs::relative(path).string())), other_numerics('c'));
}

TEST(runtime, loads_a_file_that_was_written_in_place) {
    const Folder folder;
    const std::string path = folder.file("step.so");
    Loads loads;
    replace(path, rebuilt(other_numerics('a')));
    ASSERT_NE(loads.load(path), nullptr);
    for (const char letter : {'b', 'c'}) { // which changes the code of the first program too: it is not run
        std::fstream(path, std::ios::binary | std::ios::in | std::ios::out) << rebuilt(other_numerics(letter));
        EXPECT_EQ(loads.numerics(loads.load(path)), other_numerics(letter));
    }
}

TEST(runtime, loads_one_file_once) {
    Loads loads;
    const scalide_program *program = loads.load(SCALIDE_SAMPLE_LIBRARY);
    ASSERT_NE(program, nullptr);
    EXPECT_EQ(loads.load(SCALIDE_SAMPLE_LIBRARY), program);
}

TEST(runtime, a_new_file_that_is_no_library_is_refused_by_its_path) {
    const Folder folder;
    const std::string path = folder.file("step.so");
    Loads loads;
    replace(path, rebuilt(other_numerics('a')));
    ASSERT_NE(loads.load(path), nullptr);
    scalide_library *library = nullptr;
    replace(path, "no library");
    EXPECT_EQ(scalide_load(loads.context.handle, path.c_str(), &library), SCALIDE_FILE_ERROR);
    const std::string start = path + ": cannot load this file: ";
    EXPECT_EQ(std::string(scalide_message(loads.context.handle)).substr(0, start.size()), start);
    const std::string whole = rebuilt(other_numerics('b'));
    replace(path, whole.substr(0, whole.size() / 2));
    EXPECT_EQ(scalide_load(loads.context.handle, path.c_str(), &library), SCALIDE_FILE_ERROR);
    EXPECT_EQ(scalide_message(loads.context.handle),
              path + ": cannot load this file: the file is truncated. Build it with 'scalide build --shared'.");
}

// Names and files that strangers made: what messages show of them, and what is no file.
#include "fixture.h"
#include "scalide/safetensors.h"
#include "support/folder.h"
#include <fstream>
#include <string>
#include <sys/stat.h>

using scalide::test::Context;
using scalide::test::Folder;

namespace {

/// Returns the message after the path for a file with this header.
std::string reading(const std::string &header) {
    const Folder folder;
    const std::string path = folder.file("x\n");
    std::ofstream stream(path, std::ios::binary);
    for (int i = 0; i < 8; ++i) stream.put(static_cast<char>(header.size() >> (8 * i)));
    stream << header;
    stream.close();
    char message[1000] = "";
    scalide_safetensors *file = nullptr;
    EXPECT_EQ(scalide_safetensors_read(path.c_str(), &file, message, sizeof(message)), SCALIDE_FILE_ERROR);
    scalide_safetensors_close(file);
    return std::string(message).substr(path.size() - 1);
}

std::string writing(const scalide_tensor &tensor, const scalide_metadata &metadata) {
    const Folder folder;
    char message[1000] = "";
    const scalide_safetensors_content content = {&tensor, 1, &metadata, 1};
    const scalide_status status = scalide_safetensors_write(folder.file("x").c_str(), &content, message, sizeof(message));
    return status == SCALIDE_OK ? "" : std::string(message).substr(folder.file("x").size());
}

} // namespace

TEST(runtime, messages_show_control_characters_of_names) {
    const std::string shown = R"(\x0a: tensor '\x1b[31mevil\x0d\x0aerror: all': data_offsets must span )";
    const std::string message = reading(R"({"\u001b[31mevil\r\nerror: all":{"dtype":"F32","shape":[],"data_offsets":[0,0]}})");
    EXPECT_EQ(message.substr(0, shown.size()), shown);
}

TEST(runtime, messages_cut_long_names) {
    const std::string name(1000000, 'x');
    const std::string message = reading("{\"" + name + R"(":{"dtype":"F32","shape":[1],"data_offsets":[0,8]}})");
    EXPECT_EQ(message, R"(\x0a: tensor ')" + std::string(200, 'x') +
                           "...': data_offsets must span the 4 bytes of its shape, got [0, 8]. The file is damaged: save it again.");
    std::string euros = "x"; // a character of three bytes is not cut
    for (int i = 0; i < 100; ++i) euros += "\xe2\x82\xac";
    EXPECT_EQ(reading("{\"" + euros + R"(":{"dtype":"F32","shape":[1],"data_offsets":[0,8]}})").substr(14, 211),
              euros.substr(0, 202) + "...': dat");
}

TEST(runtime, the_writer_refuses_names_that_are_not_utf8) {
    float data[1] = {};
    const scalide_array array = scalide_dense_array(data, nullptr, SCALIDE_F32, 0, nullptr);
    const scalide_metadata good = {"k", "v"};
    for (const char *name : {"\xff", "a\xc3", "\xc0\x80", "\xed\xa0\x80", "\xe2\x82", "\xf4\x90\x80\x80"}) {
        EXPECT_EQ(writing({name, array}, good), ": tensor 0: name must be UTF-8. Fill in the array with scalide_dense_array.");
        EXPECT_EQ(writing({"a", array}, {"k", name}),
                  ": metadata 0: key and value must be UTF-8 text, and the key must not be scalide.version. Leave the entry out.");
    }
    for (const char *name : {"", "\x7f", "gr\xc3\xb6\xc3\x9f", "\xe2\x82\xac", "\xf0\x9f\x98\x80"})
        EXPECT_EQ(writing({name, array}, good), "");
}

TEST(runtime, pipes_and_devices_are_no_files) {
    const Folder folder;
    const std::string pipe = folder.file("pipe");
    ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
    const Context context;
    for (const std::string &path : {pipe, std::string("/dev/null")}) {
        char message[300] = "";
        scalide_safetensors *file = nullptr;
        EXPECT_EQ(scalide_safetensors_read(path.c_str(), &file, message, sizeof(message)), SCALIDE_FILE_ERROR);
        EXPECT_EQ(message, path + ": cannot read this file: it is a pipe or a device. Save the tensors to a regular file.");
        scalide_library *library = nullptr;
        EXPECT_EQ(scalide_load(context.handle, path.c_str(), &library), SCALIDE_FILE_ERROR);
        EXPECT_EQ(scalide_message(context.handle),
                  path + ": cannot load this file: it is a pipe or a device. Build it with 'scalide build --shared'.");
    }
}

TEST(runtime, an_empty_path_is_no_library) {
    const Context context;
    scalide_library *library = nullptr;
    EXPECT_EQ(scalide_load(context.handle, "", &library), SCALIDE_INVALID_ARGUMENT);
    EXPECT_STREQ(scalide_message(context.handle), "the path of a library must not be empty. Pass the path that 'scalide build' printed.");
    EXPECT_EQ(library, nullptr);
}

#include "scalide/safetensors.h"
#include "fixture.h"
#include "support/folder.h"
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <string>
#include <sys/resource.h>
#include <tuple>

using scalide::test::Folder;
namespace fs = std::filesystem;

namespace {

/// A read file, or its message.
struct ReadFile {
    scalide_safetensors *handle = nullptr;
    char message[600] = "";
    scalide_status status;
    explicit ReadFile(const std::string &path) : status(scalide_safetensors_read(path.c_str(), &handle, message, sizeof(message))) {}
    ReadFile(const ReadFile &) = delete;
    ReadFile &operator=(const ReadFile &) = delete;
    ~ReadFile() { scalide_safetensors_close(handle); }
};

std::string bytes_of(const std::string &path) {
    std::ifstream stream(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
}

/// A file of this header (its true length in front, unless another is given) and this many bytes of data.
void write_file(const std::string &path, const std::string &header, size_t data_bytes, uint64_t length = UINT64_MAX) {
    if (length == UINT64_MAX) length = header.size();
    std::ofstream stream(path, std::ios::binary);
    for (int i = 0; i < 8; ++i) stream.put(static_cast<char>(length >> (8 * i)));
    stream << header << std::string(data_bytes, 'x');
}

scalide_status write(const std::string &path, const std::vector<scalide_tensor> &tensors, const std::vector<scalide_metadata> &metadata,
                     std::string *message = nullptr) {
    char text[600] = "";
    const scalide_safetensors_content content = {tensors.data(), tensors.size(), metadata.data(), metadata.size()};
    const scalide_status status = scalide_safetensors_write(path.c_str(), &content, text, sizeof(text));
    if (message) *message = text;
    return status;
}

struct WrongFile {
    const char *name;
    std::string header;
    size_t data_bytes;
    const char *message; ///< after "<path>: "
    uint64_t length = UINT64_MAX;
};

const std::string good_tensor = R"("a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]})";

const WrongFile wrong_files[] = {
    {"long_header", "{}", 0, "the header must have at most 100000000 bytes, got 1000000000000. The file is not in the safetensors format.",
     1000000000000},
    {"truncated_header", "{}", 0, "the header has 50 bytes, but the file has only 10. The file is damaged: save it again.", 50},
    {"truncated_data", "{" + good_tensor + "}", 7,
     "the header describes 8 bytes of data, but the file has 7. The file is damaged: save it again."},
    {"surplus_data", "{" + good_tensor + "}", 9,
     "the header describes 8 bytes of data, but the file has 9. The file is damaged: save it again."},
    {"lying_shape", R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", 8,
     "tensor 'a': data_offsets must span the 12 bytes of its shape, got [0, 8]. The file is damaged: save it again."},
    {"huge_shape", R"({"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]}})", 0,
     "tensor 'a': the data of this shape must have fewer than 2^63 bytes. The file is damaged: save it again."},
    {"backward_offsets", R"({"a":{"dtype":"F32","shape":[0],"data_offsets":[8,0]}})", 8,
     "tensor 'a': data_offsets must span the 0 bytes of its shape, got [8, 0]. The file is damaged: save it again."},
    {"overlap", "{" + good_tensor + R"(,"b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", 8,
     "tensor 'b': data must begin at byte 8, where the previous tensor ends, got 4. The file is damaged: save it again."},
    {"hole", "{" + good_tensor + R"(,"b":{"dtype":"F32","shape":[1],"data_offsets":[12,16]}})", 16,
     "tensor 'b': data must begin at byte 8, where the previous tensor ends, got 12. The file is damaged: save it again."},
    {"two_of_a_name", "{" + good_tensor + R"(,"a":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}})", 12,
     "tensor 'a': two tensors have this name. The file is damaged: save it again."},
    {"descending_offsets", R"({"a":{"dtype":"U64","shape":[0],"data_offsets":[8,0]}})", 8,
     "tensor 'a': data_offsets must be ascending, got [8, 0]. The file is damaged: save it again."},
    {"hole_before_skipped", "{" + good_tensor + R"(,"b":{"dtype":"U64","shape":[1],"data_offsets":[12,20]}})", 20,
     "tensor 'b': data must begin at byte 8, where the previous tensor ends, got 12. The file is damaged: save it again."},
    {"skipped_of_a_name", "{" + good_tensor + R"(,"a":{"dtype":"U64","shape":[1],"data_offsets":[8,16]}})", 16,
     "tensor 'a': two tensors have this name. The file is damaged: save it again."},
    {"newer_version", R"({"__metadata__":{"scalide.version":"2"}})", 0,
     "metadata 'scalide.version' must be at most 1, got 2. Read the file with a newer runtime."},
    {"empty_header", "", 0,
     "header byte 0: expected '{', got the end of the header. The file is damaged or not in the safetensors format."},
    {"not_json", "hello", 0, "header byte 0: expected '{', got 'h'. The file is damaged or not in the safetensors format."},
    {"open_string", R"({"a)", 0,
     "header byte 3: expected the end of a string, got the end of the header. The file is damaged or not in the safetensors format."},
    {"bad_escape", R"({"\q)", 0, "header byte 3: expected a JSON escape, got 'q'. The file is damaged or not in the safetensors format."},
    {"bad_hex", R"({"\u12g4)", 0,
     "header byte 6: expected a hexadecimal digit, got 'g'. The file is damaged or not in the safetensors format."},
    {"lone_surrogate", R"({"\ud800x)", 0,
     "header byte 8: expected the low surrogate of a pair, got 'x'. The file is damaged or not in the safetensors format."},
    {"zero_byte", R"({"\u0000":)", 0,
     "header byte 8: expected a name without zero bytes, got '\"'. The file is damaged or not in the safetensors format."},
    {"control_character", "{\"a\n", 0,
     "header byte 3: expected a string without control characters, got byte 10. The file is damaged or not in the safetensors format."},
    {"negative_number", R"({"a":{"shape":[-1]}})", 0,
     "header byte 15: expected a non-negative integer, got '-'. The file is damaged or not in the safetensors format."},
    {"large_number", R"({"a":{"shape":[99999999999999999999]}})", 0,
     "header byte 33: expected an integer below 2^63, got '9'. The file is damaged or not in the safetensors format."},
    {"three_offsets", R"({"a":{"data_offsets":[0,1,2]}})", 0,
     "header byte 28: expected two numbers in data_offsets before this byte, got '}'. The file is damaged or not in the safetensors "
     "format."},
    {"unknown_key", R"({"a":{"size":1}})", 0,
     "header byte 12: expected the key dtype, shape or data_offsets before this byte, got ':'. The file is damaged or not in the "
     "safetensors format."},
    {"repeated_key", R"({"a":{"dtype":"F32","dtype":"F32"}})", 0,
     "header byte 27: expected no key twice before this byte, got ':'. The file is damaged or not in the safetensors format."},
    {"missing_key", R"({"a":{"dtype":"F32","shape":[]}})", 0,
     "header byte 31: expected dtype, shape and data_offsets before this byte, got '}'. The file is damaged or not in the "
     "safetensors "
     "format."},
    {"trailing_text", "{} x", 0,
     "header byte 3: expected the end of the header, got 'x'. The file is damaged or not in the safetensors format."},
    {"two_metadata", R"({"__metadata__":{},"__metadata__":{}})", 0,
     "header byte 34: expected only one __metadata__ before this byte, got '{'. The file is damaged or not in the safetensors format."},
};

class WrongFileTest : public testing::Test {
public:
    explicit WrongFileTest(const WrongFile &wrong) : wrong_(wrong) {}

private:
    void TestBody() override {
        Folder folder;
        const std::string path = folder.file("wrong.safetensors");
        write_file(path, wrong_.header, wrong_.data_bytes, wrong_.length);
        ReadFile file(path);
        EXPECT_EQ(file.status, SCALIDE_FILE_ERROR);
        EXPECT_EQ(file.message, path + ": " + wrong_.message);
        EXPECT_EQ(file.handle, nullptr);
    }

    const WrongFile &wrong_;
};

// One test a file: runtime.safetensors_refuses_<name>.
const bool registered = [] {
    for (const WrongFile &wrong : wrong_files) {
        const std::string name = std::string("safetensors_refuses_") + wrong.name;
        testing::RegisterTest("runtime", name.c_str(), nullptr, nullptr, __FILE__, __LINE__,
                              [&wrong]() -> testing::Test * { return new WrongFileTest(wrong); });
    }
    return true;
}();

} // namespace

TEST(runtime, safetensors_maps_a_file_as_it_reads_it) {
    const Folder folder;
    const std::string path = folder.file("x");
    write_file(path, R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[3,11]},"b":{"dtype":"U8","shape":[3],"data_offsets":[0,3]}})", 11);
    const std::string before = bytes_of(path);
    const ReadFile read(path);
    scalide_safetensors *mapped = nullptr;
    ASSERT_EQ(scalide_safetensors_map(path.c_str(), &mapped, nullptr, 0), SCALIDE_OK);
    ASSERT_EQ(scalide_safetensors_count(mapped), 2u);
    for (const char *name : {"a", "b"}) {
        scalide_array expected, got;
        ASSERT_EQ(scalide_safetensors_find(read.handle, name, &expected), SCALIDE_OK);
        ASSERT_EQ(scalide_safetensors_find(mapped, name, &got), SCALIDE_OK);
        EXPECT_EQ(std::tuple(got.dtype, got.rank, got.extent[0]), std::tuple(expected.dtype, expected.rank, expected.extent[0]));
        EXPECT_EQ(std::memcmp(got.data, expected.data, name[0] == 'a' ? 8 : 3), 0);
        static_cast<char *>(got.data)[0] = 'y';
    }
    fs::remove(path);
    EXPECT_EQ(static_cast<const char *>(scalide_safetensors_tensor(mapped, 0)->array.data)[1], 'x');
    scalide_safetensors_close(mapped);
    write_file(path, "{}", 0);
    ASSERT_EQ(scalide_safetensors_map(path.c_str(), &mapped, nullptr, 0), SCALIDE_OK);
    EXPECT_EQ(scalide_safetensors_count(mapped), 0u);
    scalide_safetensors_close(mapped);
    write_file(path, before.substr(8), 0);
    char message[600] = "";
    EXPECT_EQ(scalide_safetensors_map(path.c_str(), &mapped, message, sizeof message), SCALIDE_FILE_ERROR);
    EXPECT_EQ(mapped, nullptr);
    EXPECT_STREQ(message, ReadFile(path).message);
    EXPECT_EQ(scalide_safetensors_map(folder.file("").c_str(), &mapped, message, sizeof message), SCALIDE_FILE_ERROR);
    EXPECT_STREQ(message, ReadFile(folder.file("")).message);
}

TEST(runtime, safetensors_reads_the_golden_file) {
    const std::string path = SCALIDE_TESTS_DIR "/golden/data/checkpoint_tensors.safetensors";
    ReadFile file(path);
    ASSERT_EQ(file.status, SCALIDE_OK) << file.message;
    ASSERT_EQ(scalide_safetensors_count(file.handle), 8u);
    EXPECT_STREQ(scalide_safetensors_metadata(file.handle, "note"), "golden");
    EXPECT_EQ(scalide_safetensors_metadata(file.handle, "author"), nullptr);
    const struct {
        const char *name;
        int32_t dtype;
        std::vector<int64_t> extents;
    } expected[] = {{"a.f32", SCALIDE_F32, {3, 4}},        {"empty", SCALIDE_F32, {0, 3}},
                    {"scalar", SCALIDE_F32, {}},           {"i32", SCALIDE_I32, {5}},
                    {"c.bf16", SCALIDE_BF16, {2, 3, 2}},   {"b.f16", SCALIDE_F16, {7}},
                    {"d.e4m3", SCALIDE_F8_E4M3FN, {4, 4}}, {"e.e5m2", SCALIDE_F8_E5M2, {5}}};
    for (const auto &tensor : expected) {
        scalide_array array;
        ASSERT_EQ(scalide_safetensors_find(file.handle, tensor.name, &array), SCALIDE_OK) << tensor.name;
        EXPECT_EQ(array.dtype, tensor.dtype);
        EXPECT_EQ(std::vector<int64_t>(array.extent, array.extent + array.rank), tensor.extents);
        EXPECT_EQ(reinterpret_cast<uintptr_t>(array.data) % 64, 0u);
    }
}

TEST(runtime, safetensors_round_trip_keeps_the_golden_file) {
    const std::string path = SCALIDE_TESTS_DIR "/golden/data/checkpoint_tensors.safetensors";
    Folder folder;
    ReadFile first(path);
    ASSERT_EQ(first.status, SCALIDE_OK);
    std::vector<scalide_tensor> tensors;
    for (size_t i = 0; i < scalide_safetensors_count(first.handle); ++i) tensors.push_back(*scalide_safetensors_tensor(first.handle, i));
    std::string message;
    ASSERT_EQ(write(folder.file("copy"), tensors, {{"note", "golden"}, {"quote", "\"\\\x01 \xC3\xA9"}}, &message), SCALIDE_OK) << message;
    ReadFile second(folder.file("copy"));
    ASSERT_EQ(second.status, SCALIDE_OK) << second.message;
    EXPECT_STREQ(scalide_safetensors_metadata(second.handle, "quote"), "\"\\\x01 \xC3\xA9");
    EXPECT_STREQ(scalide_safetensors_metadata(second.handle, "scalide.version"), "1");
    const std::string golden = bytes_of(path), copy = bytes_of(folder.file("copy"));
    constexpr size_t data_bytes = 131;
    EXPECT_EQ(golden.substr(golden.size() - data_bytes), copy.substr(copy.size() - data_bytes));
    for (size_t i = 0; i < tensors.size(); ++i) {
        const scalide_tensor *tensor = scalide_safetensors_tensor(second.handle, i);
        EXPECT_STREQ(tensor->name, tensors[i].name);
        EXPECT_EQ(tensor->array.dtype, tensors[i].array.dtype);
        EXPECT_EQ(std::memcmp(tensor->array.extent, tensors[i].array.extent, sizeof(tensor->array.extent)), 0);
    }
}

TEST(runtime, safetensors_keeps_a_scaled_tensor_in_two) {
    Folder folder;
    uint16_t data[6] = {1, 2, 3, 4, 5, 6};
    float scale = 0.25f;
    const int64_t extents[] = {2, 3};
    ASSERT_EQ(write(folder.file("w"), {{"w", scalide_dense_array(data, &scale, SCALIDE_F16, 2, extents)}}, {}), SCALIDE_OK);
    ReadFile file(folder.file("w"));
    ASSERT_EQ(file.status, SCALIDE_OK) << file.message;
    EXPECT_EQ(scalide_safetensors_count(file.handle), 2u);
    scalide_array array;
    ASSERT_EQ(scalide_safetensors_find(file.handle, "w", &array), SCALIDE_OK);
    EXPECT_EQ(*array.scale, 0.25f);
    EXPECT_EQ(std::memcmp(array.data, data, sizeof(data)), 0);
    ASSERT_EQ(scalide_safetensors_find(file.handle, "w.data", &array), SCALIDE_OK);
    EXPECT_EQ(array.scale, nullptr);
    EXPECT_EQ(scalide_safetensors_find(file.handle, "v", &array), SCALIDE_INVALID_ARGUMENT);
    EXPECT_EQ(scalide_safetensors_tensor(file.handle, 2), nullptr);
}

TEST(runtime, safetensors_parts_give_way_to_whole_tensors) {
    Folder folder;
    float data[2] = {1, 2}, other = 3, whole = -4, scale = 0.25f;
    const int64_t extent = 2;
    const scalide_array scaled = scalide_dense_array(data, &scale, SCALIDE_F32, 1, &extent);
    const scalide_array plain = scalide_dense_array(&whole, nullptr, SCALIDE_F32, 0, nullptr);
    const scalide_array scalar = scalide_dense_array(&other, &scale, SCALIDE_F32, 0, nullptr);
    ASSERT_EQ(write(folder.file("w"), {{"w", scaled}, {"w.scale", plain}, {"v", scalar}}, {}), SCALIDE_OK);
    ReadFile file(folder.file("w"));
    ASSERT_EQ(file.status, SCALIDE_OK) << file.message;
    const char *const names[] = {"w!data", "w!scale", "w.scale", "v.data", "v.scale"};
    for (size_t i = 0; i < std::size(names); ++i) EXPECT_STREQ(scalide_safetensors_tensor(file.handle, i)->name, names[i]);
    scalide_array array;
    ASSERT_EQ(scalide_safetensors_find(file.handle, "w", &array), SCALIDE_OK);
    ASSERT_NE(array.scale, nullptr);
    EXPECT_EQ(*array.scale, 0.25f);
    EXPECT_EQ(std::memcmp(array.data, data, sizeof(data)), 0);
    ASSERT_EQ(scalide_safetensors_find(file.handle, "w.scale", &array), SCALIDE_OK);
    EXPECT_EQ(array.scale, nullptr);
    EXPECT_EQ(*static_cast<float *>(array.data), -4);
}

TEST(runtime, safetensors_decodes_escapes) {
    Folder folder;
    write_file(folder.file("e"), R"( {"\"\\\/\n\u00e9\u20AC\ud83d\ude00" : {"shape":[ ],"data_offsets":[0 , 1],"dtype":"BOOL"} }  )", 1);
    ReadFile file(folder.file("e"));
    ASSERT_EQ(file.status, SCALIDE_OK) << file.message;
    EXPECT_STREQ(scalide_safetensors_tensor(file.handle, 0)->name, "\"\\/\n\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80");
}

TEST(runtime, safetensors_refuses_files_that_cannot_be_read) {
    Folder folder;
    ReadFile missing(folder.file("missing"));
    EXPECT_EQ(missing.status, SCALIDE_FILE_ERROR);
    EXPECT_EQ(missing.message, folder.file("missing") + ": cannot read this file: No such file or directory. Check the path.");
    ReadFile directory(folder.path.string());
    EXPECT_EQ(directory.message, folder.path.string() + ": cannot read this file: Is a directory. Check the path.");
    std::ofstream(folder.file("short")) << "abc";
    ReadFile short_file(folder.file("short"));
    EXPECT_EQ(short_file.message, folder.file("short") +
                                      ": the file must begin with 8 bytes of header length, but it has 3 bytes. The file is "
                                      "damaged: save it again.");
    EXPECT_EQ(scalide_safetensors_read(folder.file("short").c_str(), &short_file.handle, nullptr, 0), SCALIDE_FILE_ERROR);
}

TEST(runtime, safetensors_writer_checks_its_input) {
    Folder folder;
    float data[4] = {};
    int64_t extents[] = {2, 2};
    const scalide_array good = scalide_dense_array(data, nullptr, SCALIDE_F32, 2, extents);
    scalide_array strided = good, no_dtype = good, no_data = good, bad_rank = good;
    strided.stride[0] = 4;
    no_dtype.dtype = 40;
    no_data.data = nullptr;
    bad_rank.rank = 9;
    scalide_array scaled = good;
    scaled.scale = data;
    const std::string path = folder.file("out"), tensor = path + ": tensor 0: ";
    const std::string advice = ". Fill in the array with scalide_dense_array.";
    const struct {
        std::vector<scalide_tensor> tensors;
        std::string message;
    } cases[] = {
        {{{nullptr, good}}, tensor + "name must be text other than __metadata__" + advice},
        {{{"__metadata__", good}}, tensor + "name must be text other than __metadata__" + advice},
        {{{"a", strided}}, tensor + "strides must be dense and row-major" + advice},
        {{{"a", no_dtype}}, tensor + "dtype must be a scalide_dtype" + advice},
        {{{"a", no_data}}, tensor + "data must point to memory" + advice},
        {{{"a", bad_rank}}, tensor + "shape must have a rank in [0, 8], extents of at least 0 and fewer than 2^63 bytes" + advice},
        {{{"a.data", good}, {"a.data", good}}, path + ": tensor 'a.data': two tensors have this name. Rename one of them."},
        {{{"a", scaled}, {"a", scaled}}, path + ": tensor 'a.data': two tensors have this name. Rename one of them."},
        {{{"a.data", good}, {"a", scaled}, {"a!data", good}}, path + ": tensor 'a!data': two tensors have this name. Rename one of them."},
    };
    for (const auto &wrong : cases) {
        std::string message;
        EXPECT_EQ(write(path, wrong.tensors, {}, &message), SCALIDE_INVALID_ARGUMENT);
        EXPECT_EQ(message, wrong.message);
    }
    std::string message;
    EXPECT_EQ(write(path, {}, {{"scalide.version", "7"}}, &message), SCALIDE_INVALID_ARGUMENT);
    EXPECT_EQ(message,
              path + ": metadata 0: key and value must be UTF-8 text, and the key must not be scalide.version. Leave the entry out.");
    EXPECT_TRUE(fs::is_empty(folder.path));
}

TEST(runtime, safetensors_failed_write_changes_nothing) {
    Folder folder;
    std::vector<float> data(100000);
    const int64_t extent = 100000;
    const scalide_tensor tensor = {"a", scalide_dense_array(data.data(), nullptr, SCALIDE_F32, 1, &extent)};
    const std::string path = folder.file("out");
    std::ofstream(path) << "precious";
    rlimit before;
    getrlimit(RLIMIT_FSIZE, &before);
    const rlimit small = {4096, before.rlim_max};
    const auto handler = std::signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &small); // as a full disk: writing fails in the middle
    std::string message;
    const scalide_status status = write(path, {tensor}, {}, &message);
    setrlimit(RLIMIT_FSIZE, &before);
    std::signal(SIGXFSZ, handler);
    EXPECT_EQ(status, SCALIDE_FILE_ERROR);
    EXPECT_EQ(message, path + ": cannot write this file: File too large. Nothing was changed. Check the folder and the free space.");
    EXPECT_EQ(bytes_of(path), "precious");
    EXPECT_EQ(std::distance(fs::directory_iterator(folder.path), {}), 1) << "no temporary file remains";
    EXPECT_EQ(write(folder.file("no/such/folder"), {tensor}, {}, &message), SCALIDE_FILE_ERROR);
    EXPECT_EQ(message,
              folder.file("no/such/folder") +
                  ": cannot write this file: No such file or directory. Nothing was changed. Check the folder and the free space.");
}

TEST(runtime, safetensors_survives_damaged_files) {
    const auto seed = std::random_device()();
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    Folder folder;
    float data[6] = {};
    const int64_t extents[] = {2, 3};
    const std::string path = folder.file("f");
    ASSERT_EQ(write(path, {{"w", scalide_dense_array(data, data, SCALIDE_F32, 2, extents)}}, {{"k", "v"}}), SCALIDE_OK);
    const std::string good = bytes_of(path);
    for (int i = 0; i < 500; ++i) {
        std::string bytes = good;
        for (auto changes = 1 + random() % 3; changes > 0; --changes) bytes[random() % bytes.size()] = static_cast<char>(random());
        if (random() % 4 == 0) bytes.resize(random() % bytes.size());
        std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
        ReadFile file(path);
        EXPECT_EQ(file.status == SCALIDE_OK, file.handle != nullptr);
        EXPECT_EQ(file.status == SCALIDE_OK, file.message[0] == 0);
    }
}

TEST(runtime, safetensors_skips_what_no_array_can_hold) {
    const Folder folder;
    write_file(folder.file("s"),
               R"({"step":{"dtype":"U64","shape":[1],"data_offsets":[0,8]},"w":{"dtype":"F32","shape":[2],"data_offsets":[8,16]},)"
               R"("deep":{"dtype":"F32","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[16,20]},)"
               R"("c.data":{"dtype":"F4","shape":[2],"data_offsets":[20,21]},"c.scale":{"dtype":"F32","shape":[],"data_offsets":[21,25]},)"
               R"("b":{"dtype":"U8","shape":[3],"data_offsets":[25,28]}})",
               28);
    ReadFile file(folder.file("s"));
    ASSERT_EQ(file.status, SCALIDE_OK) << file.message;
    std::vector<std::string> names, skipped;
    for (size_t i = 0; i < scalide_safetensors_count(file.handle); ++i)
        names.emplace_back(scalide_safetensors_tensor(file.handle, i)->name);
    for (size_t i = 0; i < scalide_safetensors_skipped_count(file.handle); ++i) {
        const scalide_skipped_tensor *tensor = scalide_safetensors_skipped(file.handle, i);
        skipped.push_back(std::string(tensor->name) + " " + tensor->dtype + " " + std::to_string(tensor->rank));
    }
    EXPECT_EQ(names, (std::vector<std::string>{"w", "c.scale", "b"}));
    EXPECT_EQ(skipped, (std::vector<std::string>{"step U64 1", "deep F32 9", "c.data F4 1"}));
    EXPECT_EQ(scalide_safetensors_skipped(file.handle, 3), nullptr);
    scalide_array array;
    for (const char *name : {"w", "c.scale", "b"}) {
        ASSERT_EQ(scalide_safetensors_find(file.handle, name, &array), SCALIDE_OK) << name;
        EXPECT_EQ(*static_cast<char *>(array.data), 'x');
    }
    const std::string dtypes = "dtype must be one of F32 F16 BF16 F8_E4M3 F8_E5M2 F8_E4M3FNUZ F8_E5M2FNUZ F8_E8M0 I32 BOOL F64 I8 U8 I16 "
                               "U16 U32 F8_E3M4 F8_E4M3_IEEE F8_E4M3B11FNUZ I64, got ";
    const struct {
        const char *name;
        scalide_status status;
        std::string message;
    } asked[] = {{"w", SCALIDE_OK, ""},
                 {"step", SCALIDE_UNSUPPORTED, "tensor 'step': " + dtypes + "U64. Convert the tensor."},
                 {"deep", SCALIDE_UNSUPPORTED, "tensor 'deep': rank must be at most 8, got 9. Reshape the tensor."},
                 {"c", SCALIDE_UNSUPPORTED, "tensor 'c.data': " + dtypes + "F4. Convert the tensor."},
                 {"v", SCALIDE_INVALID_ARGUMENT, "tensor 'v': the file has no tensor of this name. Check the name."}};
    for (const auto &[name, status, words] : asked) {
        char message[600] = "old";
        EXPECT_EQ(scalide_safetensors_find(file.handle, name, &array), status) << name;
        scalide_safetensors_explain(file.handle, name, message, sizeof(message));
        EXPECT_EQ(message, words);
    }
}

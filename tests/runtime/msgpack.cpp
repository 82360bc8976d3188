// Files in the layout of Flax: golden files come back with the same bytes; damaged files and wrong leaves are refused.
#include "scalide/msgpack.h"
#include "file_faults.h"
#include "fixture.h"
#include "scalide/checkpoints.h"
#include "support/folder.h"
#include <cstring>
#include <fstream>
#include <random>
#include <string>

using namespace scalide::test;

namespace {

/// A read file, or its message.
struct FlaxFile {
    scalide_msgpack *handle = nullptr;
    char message[600] = "";
    scalide_status status;
    explicit FlaxFile(const std::string &path, char separator = '/')
        : status(scalide_msgpack_read(path.c_str(), separator, &handle, message, sizeof(message))) {}
    FlaxFile(const FlaxFile &) = delete;
    FlaxFile &operator=(const FlaxFile &) = delete;
    ~FlaxFile() { scalide_msgpack_close(handle); }

    std::vector<scalide_leaf> leaves() const {
        std::vector<scalide_leaf> found;
        for (size_t i = 0; i < scalide_msgpack_count(handle); ++i) found.push_back(*scalide_msgpack_leaf(handle, i));
        return found;
    }
    const scalide_leaf &operator[](const std::string &name) const {
        for (size_t i = 0; i < scalide_msgpack_count(handle); ++i)
            if (scalide_msgpack_leaf(handle, i)->name == name) return *scalide_msgpack_leaf(handle, i);
        throw std::runtime_error(name);
    }
};

std::string bytes_of(const std::string &path) {
    std::ifstream stream(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
}

void put(const std::string &path, const std::string &bytes) { std::ofstream(path, std::ios::binary) << bytes; }

std::string golden(const char *tree) { return std::string(SCALIDE_TESTS_DIR "/golden/data/checkpoint_tree_") + tree + ".msgpack"; }

std::string write(const std::string &path, const std::vector<scalide_leaf> &leaves, uint64_t chunk_bytes = 0) {
    char message[600] = "";
    const scalide_status status =
        scalide_msgpack_write(path.c_str(), leaves.data(), leaves.size(), '/', chunk_bytes, message, sizeof(message));
    EXPECT_EQ(status == SCALIDE_OK, message[0] == 0) << message;
    return message;
}

scalide_leaf leaf_of(const char *name, const scalide_array &array) {
    scalide_leaf leaf = {};
    leaf.name = name;
    leaf.array = array;
    return leaf;
}

} // namespace

TEST(runtime, a_msgpack_file_of_flax_is_written_back_with_the_same_bytes) {
    const Folder folder;
    for (const char *tree : {"params", "nested", "fp8"}) {
        const FlaxFile file(golden(tree));
        ASSERT_EQ(file.status, SCALIDE_OK) << file.message;
        EXPECT_EQ(write(folder.file(tree), file.leaves()), "");
        EXPECT_EQ(bytes_of(folder.file(tree)), bytes_of(golden(tree)));
    }
    const FlaxFile nested(golden("nested"));
    EXPECT_EQ(nested["layers/1/sub/0"].kind, SCALIDE_LEAF_SCALAR);
    EXPECT_EQ(*static_cast<double *>(nested["layers/1/sub/1"].array.data), 2.5);
    EXPECT_EQ(nested["layers/1/sub/2/1"].kind, SCALIDE_LEAF_NONE);
    EXPECT_STREQ(static_cast<const char *>(nested["layers/1/sub/2/2"].data), "text");
    EXPECT_STREQ(nested["z"].dtype, "complex64");
    EXPECT_EQ(nested["z"].array.dtype, -1);
    EXPECT_EQ(nested["empty"].kind, SCALIDE_LEAF_EMPTY);
    EXPECT_EQ(nested["scalar_f"].number, 0.1);
    EXPECT_EQ(nested["i64"].array.extent[1], 3);
    const FlaxFile params(golden("params"));
    EXPECT_EQ(params["step"].integer, 17);
    EXPECT_EQ(params["params/dense_1/kernel"].array.dtype, SCALIDE_BF16);
}

TEST(runtime, a_msgpack_file_that_is_cut_or_damaged_is_refused_in_words) {
    const Folder folder;
    const std::string path = folder.file("x"), good = bytes_of(golden("nested"));
    for (size_t size = 0; size < good.size(); ++size) {
        put(path, good.substr(0, size));
        const FlaxFile file(path);
        EXPECT_EQ(file.status, SCALIDE_FILE_ERROR) << size;
        EXPECT_TRUE(std::strstr(file.message, "The file is damaged or not in the msgpack layout of Flax.")) << file.message;
    }
    std::mt19937 random(1);
    for (int i = 0; i < 3000; ++i) {
        std::string damaged = good;
        damaged[random() % good.size()] = static_cast<char>(random());
        put(path, damaged);
        const FlaxFile file(path);
        EXPECT_EQ(file.status == SCALIDE_OK, file.message[0] == 0);
    }
    EXPECT_EQ(FlaxFile(folder.file("missing")).status, SCALIDE_FILE_ERROR);
    EXPECT_EQ(std::string(FlaxFile(golden("params"), '_').message),
              golden("params") + ": byte 17: a key contains the separator '_'. Read the file with another separator.");
}

TEST(runtime, wrong_leaves_of_a_msgpack_file_are_refused) {
    const Folder folder;
    const std::string path = folder.file("x");
    float number = 1;
    const scalide_array array = scalide_dense_array(&number, nullptr, SCALIDE_F32, 0, nullptr);
    const auto refuses = [&](const std::vector<scalide_leaf> &leaves, const char *text) {
        const std::string message = write(path, leaves);
        EXPECT_TRUE(message.find(text) != std::string::npos) << message;
        EXPECT_FALSE(std::ifstream(path).is_open());
    };
    refuses({leaf_of("a", array), leaf_of("a", array)}, "leaf 'a': a name must stand once");
    refuses({leaf_of("a/b", array), leaf_of("a", array)}, "leaf 'a': a name must stand once");
    refuses({leaf_of("a", array), leaf_of("a/b", array)}, "leaf 'a/b': a name must stand once");
    refuses({leaf_of(nullptr, array)}, "leaf 0: name must be UTF-8");
    scalide_array wrong = array;
    wrong.dtype = 99;
    refuses({leaf_of("a", wrong)}, "leaf 0: dtype must be a scalide_dtype");
    wrong = array;
    wrong.rank = 9;
    refuses({leaf_of("a", wrong)}, "leaf 0: shape must have a rank in [0, 8]");
    scalide_leaf odd = leaf_of("a", array);
    odd.kind = SCALIDE_LEAF_KIND_COUNT;
    refuses({odd}, "leaf 0: kind must be a scalide_leaf_kind");
    refuses({leaf_of(std::string(199, '/').c_str(), array)}, "at most 64 keys");
}

TEST(runtime, every_failing_file_operation_of_msgpack_leaves_a_whole_file) {
    const Folder folder;
    const std::string path = folder.file("x");
    std::vector<float> elements(10000, 1);
    const int64_t count = 10000;
    const auto save = [&](float value) {
        elements.assign(elements.size(), value);
        return write(path, {leaf_of("a", scalide_dense_array(elements.data(), nullptr, SCALIDE_F32, 1, &count))}, 7000);
    };
    save(1);
    std::string message;
    const auto check = [&] {
        const FlaxFile file(path);
        ASSERT_EQ(file.status, SCALIDE_OK) << file.message;
        const auto *found = static_cast<const float *>(file["a"].array.data);
        const bool is_new = message.empty() || message.find("the file is written") != std::string::npos;
        EXPECT_EQ(found[0], is_new ? 2 : 1) << message;
        EXPECT_EQ(found[9999], found[0]);
        save(1);
    };
    EXPECT_GE(fail_each_operation([&] { message = save(2); }, check), 9);
    EXPECT_EQ(message, "");
}

TEST(runtime, a_checkpoint_of_flax_is_read_by_the_names_of_a_program) {
    scalide_safetensors *file = nullptr;
    ASSERT_EQ(scalide_checkpoint_read_path(golden("nested").c_str(), &file, nullptr, 0), SCALIDE_OK);
    scalide_array array;
    ASSERT_EQ(scalide_safetensors_find(file, "layers.0.w", &array), SCALIDE_OK);
    EXPECT_EQ(array.rank, 2);
    ASSERT_EQ(scalide_safetensors_find(file, "scalar_f", &array), SCALIDE_OK);
    EXPECT_EQ(array.dtype, SCALIDE_F64);
    ASSERT_EQ(scalide_safetensors_find(file, "layers.1.sub.2.0", &array), SCALIDE_OK);
    EXPECT_EQ(array.dtype, SCALIDE_BOOL);
    EXPECT_EQ(*static_cast<const bool *>(array.data), true);
    EXPECT_EQ(scalide_safetensors_find(file, "z", &array), SCALIDE_UNSUPPORTED);
    EXPECT_EQ(scalide_safetensors_skipped_count(file), 4u);
    scalide_safetensors_close(file);
}

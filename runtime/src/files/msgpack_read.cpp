#include "base/memory.h"
#include "files/file.h"
#include "files/msgpack_format.h"
#include "files/safetensors_content.h"
#include "files/utf8.h"
#include <fcntl.h>

using namespace scalide;

struct scalide_msgpack {
    scalide_leaf *leaves;
    uint64_t count;
    uint64_t *by_name; ///< for the check of names
};

namespace {

using Kind = MsgpackToken::Kind;

constexpr uint64_t most_name_bytes = 1001; ///< of the keys with their separators: a small file needs little memory

/// A key of the path to a leaf.
struct Key {
    const char *text;
    uint32_t size;
    char digits[12]; ///< of a list
};

/// The arrays and texts of a file. Without memory, reading only measures.
struct Content {
    scalide_leaf *leaves = nullptr;
    char *names = nullptr, *data = nullptr;
    uint64_t leaf_count = 0, name_bytes = 0, data_bytes = 0;
};

/// Reads the tree in one pass.
class TreeReader {
public:
    TreeReader(const FileMessage &message, const uint8_t *memory, uint64_t size, char separator)
        : message_(message), reader_(memory, size), separator_(separator) {}

    /// If this returns false, the message is written.
    bool read(Content *content) {
        content_ = content;
        return value() && (reader_.is_at_end() || fail("the end of the file"));
    }

private:
    bool fail(const char *requirement) {
        message_.begin() << "byte " << reader_.position() << ": expected " << requirement
                         << ". The file is damaged or not in the msgpack layout of Flax.";
        return false;
    }
    bool token(MsgpackToken *token) { return reader_.next(token) || fail("a complete value"); }
    /// Reads a token of this kind.
    bool token(MsgpackToken *read, Kind kind, const char *requirement) { return token(read) && (read->kind == kind || fail(requirement)); }

    bool value();
    bool entries(const MsgpackToken &map);
    bool key(const MsgpackToken &token, Key *key);
    bool chunked();
    bool shape_of_chunks(scalide_array *array);
    bool leaf(const MsgpackToken &token);
    bool complex_number(const MsgpackToken &token, scalide_leaf *leaf);
    bool array(const MsgpackToken &token, scalide_leaf *leaf);
    bool add(scalide_leaf leaf);
    const char *put_name();
    const char *put_text(const void *text, uint64_t size);
    char *put_data(const void *data, uint64_t size);

    FileMessage message_;
    MsgpackReader reader_;
    char separator_;
    Content *content_ = nullptr;
    Key path_[most_levels];
    int level_ = 0;
};

/// Copies a text and adds a zero byte.
const char *TreeReader::put_text(const void *text, uint64_t size) {
    char *to = content_->names ? content_->names + content_->name_bytes : nullptr;
    content_->name_bytes += size + 1;
    if (!to) return "";
    if (size > 0) std::memcpy(to, text, size);
    to[size] = 0;
    return to;
}

const char *TreeReader::put_name() {
    const char *begin = content_->names ? content_->names + content_->name_bytes : "";
    for (int i = 0; i < level_; ++i) {
        put_text(path_[i].text, path_[i].size);
        if (content_->names && i + 1 < level_) content_->names[content_->name_bytes - 1] = separator_;
    }
    return level_ > 0 ? begin : put_text("", 0);
}

/// Copies data to an aligned place.
char *TreeReader::put_data(const void *data, uint64_t size) {
    char *to = content_->data ? content_->data + content_->data_bytes : nullptr;
    content_->data_bytes += round_up(size, memory_alignment);
    if (to && size > 0) std::memcpy(to, data, size);
    return to;
}

bool TreeReader::add(scalide_leaf leaf) {
    uint64_t length = 0;
    for (int i = 0; i < level_; ++i) length += path_[i].size + 1;
    if (length > most_name_bytes) return fail("a name of at most 1000 bytes before this byte");
    leaf.name = put_name();
    if (content_->leaves) content_->leaves[content_->leaf_count] = leaf;
    ++content_->leaf_count;
    return true;
}

bool TreeReader::key(const MsgpackToken &token, Key *key) {
    if (token.kind != Kind::text) return fail("a text as the key of a dict before this byte");
    *key = {reinterpret_cast<const char *>(token.data), token.size, {}};
    if (std::memchr(key->text, 0, key->size) || !is_utf8(key->text, key->size))
        return fail("a key of UTF-8 without zero bytes before this byte");
    if (key->size == 0 && level_ == 1) return fail("a key with characters before this byte"); // "" is the name of a file that is one leaf
    if (!std::memchr(key->text, separator_, key->size)) return true;
    message_.begin() << "byte " << reader_.position() << ": a key contains the separator '" << separator_
                     << "'. Read the file with another separator.";
    return false;
}

/// Reads the entries of a map or a list.
bool TreeReader::entries(const MsgpackToken &map) {
    if (level_ == most_levels) return fail("at most 64 levels of dicts before this byte");
    Key &own = path_[level_++];
    for (uint32_t i = 0; i < map.size; ++i) {
        if (map.kind == Kind::map) {
            MsgpackToken name;
            if (!token(&name)) return false;
            const bool is_chunked = i == 0 && map.size == 3 && name.kind == Kind::text && name.size == sizeof(chunked_key) - 1 &&
                                    std::memcmp(name.data, chunked_key, name.size) == 0;
            if (is_chunked) {
                --level_;
                return chunked();
            }
            if (!key(name, &own)) return false;
        } else {
            Text digits(own.digits, sizeof(own.digits));
            digits << uint64_t(i);
            own.text = own.digits;
            own.size = static_cast<uint32_t>(digits.size());
        }
        if (!value()) return false;
    }
    --level_;
    return true;
}

bool TreeReader::value() {
    MsgpackToken read;
    if (!token(&read)) return false;
    if (read.kind != Kind::map && read.kind != Kind::list) return leaf(read);
    if (read.size > 0) return entries(read);
    scalide_leaf empty = {};
    empty.kind = SCALIDE_LEAF_EMPTY;
    return add(empty);
}

bool TreeReader::shape_of_chunks(scalide_array *array) {
    MsgpackToken key, shape, extent;
    if (!token(&key, Kind::text, "the key shape before this byte")) return false;
    if (!token(&shape, Kind::map, "the shape of a chunked array before this byte")) return false;
    if (shape.size > SCALIDE_MAX_RANK) return fail("at most 8 axes before this byte");
    array->rank = static_cast<int32_t>(shape.size);
    for (uint32_t axis = 0; axis < shape.size; ++axis) {
        if (!token(&key, Kind::text, "the number of an axis before this byte")) return false;
        if (!token(&extent, Kind::integer, "an extent before this byte")) return false;
        array->extent[axis] = extent.integer;
    }
    return true;
}

/// Returns the number of bytes, or -1 if a number or a size is out of range.
int64_t bytes_of(const scalide_array &array, size_t element_bytes) {
    auto bytes = static_cast<int64_t>(element_bytes);
    for (int32_t axis = 0; axis < array.rank; ++axis)
        if (array.extent[axis] < 0 || __builtin_mul_overflow(bytes, array.extent[axis], &bytes)) return -1;
    return bytes;
}

/// Returns false if the array does not have this many bytes. The size of an unknown dtype (element_bytes = 0) is the same for all elements.
bool has_bytes(const scalide_array &array, size_t element_bytes, uint64_t bytes) {
    if (element_bytes > 0) return bytes_of(array, element_bytes) == static_cast<int64_t>(bytes);
    const int64_t elements = bytes_of(array, 1);
    return elements == 0 ? bytes == 0 : elements > 0 && bytes > 0 && bytes % static_cast<uint64_t>(elements) == 0;
}

/// Reads the rest of a chunked array, after its first key.
bool TreeReader::chunked() {
    MsgpackToken read, chunks;
    scalide_leaf whole = {}, part = {};
    if (!token(&read, Kind::boolean, "True before this byte") || !shape_of_chunks(&whole.array)) return false;
    const scalide_array shape = whole.array;
    if (!token(&read, Kind::text, "the key chunks before this byte")) return false;
    if (!token(&chunks, Kind::map, "chunks before this byte")) return false;
    const uint64_t begin = content_->data_bytes;
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < chunks.size; ++i) {
        if (!token(&read, Kind::text, "the number of a chunk before this byte")) return false;
        if (!token(&read, Kind::extension, "an array as a chunk before this byte")) return false;
        content_->data_bytes = begin + bytes; // directly after the last chunk
        if (!array(read, &part)) return false;
        if (i == 0) whole = part;
        if (part.array.dtype != whole.array.dtype) return fail("chunks of one dtype before this byte");
        bytes += part.bytes;
    }
    content_->data_bytes = begin + round_up(bytes, memory_alignment);
    if (chunks.size == 0 || whole.array.dtype < 0) return fail("chunks of a known dtype before this byte");
    const size_t element_bytes = scalide_dtype_size(whole.array.dtype);
    if (!has_bytes(shape, element_bytes, bytes)) return fail("chunks that fill the shape before this byte");
    whole.array = scalide_dense_array(whole.array.data, nullptr, whole.array.dtype, shape.rank, shape.extent);
    whole.bytes = bytes;
    whole.kind = SCALIDE_LEAF_ARRAY;
    return add(whole);
}

/// Reads an extension with shape, dtype and data.
bool TreeReader::array(const MsgpackToken &extension, scalide_leaf *leaf) {
    MsgpackReader inner(extension.data, extension.size);
    MsgpackToken tuple, shape, extent, dtype, data;
    bool good = inner.next(&tuple) && tuple.kind == Kind::list && tuple.size == 3 && inner.next(&shape) && shape.kind == Kind::list;
    if (!good) return fail("an array of shape, dtype and data before this byte");
    if (shape.size > SCALIDE_MAX_RANK) return fail("at most 8 axes before this byte");
    int64_t extents[SCALIDE_MAX_RANK] = {};
    for (uint32_t axis = 0; good && axis < shape.size; ++axis) {
        good = inner.next(&extent) && extent.kind == Kind::integer && extent.integer >= 0;
        extents[axis] = extent.integer;
    }
    good = good && inner.next(&dtype) && dtype.kind == Kind::text && inner.next(&data) && data.kind == Kind::bytes && inner.is_at_end();
    if (!good) return fail("an array of shape, dtype and data before this byte");
    const char *name = reinterpret_cast<const char *>(dtype.data);
    if (!is_utf8(name, dtype.size) || std::memchr(name, 0, dtype.size)) return fail("the name of a dtype before this byte");
    const int32_t known = numpy_dtype(name, dtype.size);
    leaf->array = scalide_dense_array(nullptr, nullptr, known, static_cast<int32_t>(shape.size), extents);
    if (leaf->kind == SCALIDE_LEAF_SCALAR && shape.size > 0) return fail("a scalar without axes before this byte");
    const size_t element_bytes = known < 0 ? 0 : scalide_dtype_size(known);
    if (!has_bytes(leaf->array, element_bytes, data.size)) return fail("data of the shape before this byte");
    leaf->dtype = put_text(name, dtype.size);
    leaf->array.data = put_data(data.data, data.size);
    leaf->data = leaf->array.data;
    leaf->bytes = data.size;
    return true;
}

bool TreeReader::complex_number(const MsgpackToken &extension, scalide_leaf *leaf) {
    MsgpackReader inner(extension.data, extension.size);
    MsgpackToken tuple, real, imaginary;
    const bool good = inner.next(&tuple) && tuple.kind == Kind::list && tuple.size == 2 && inner.next(&real) && real.kind == Kind::real &&
                      inner.next(&imaginary) && imaginary.kind == Kind::real && inner.is_at_end();
    if (!good) return fail("a complex number of two floats before this byte");
    leaf->kind = SCALIDE_LEAF_COMPLEX;
    leaf->number = real.real;
    leaf->imaginary = imaginary.real;
    return add(*leaf);
}

bool TreeReader::leaf(const MsgpackToken &token) {
    scalide_leaf leaf = {};
    leaf.integer = token.integer;
    leaf.number = token.real;
    switch (token.kind) {
    case Kind::integer: leaf.kind = SCALIDE_LEAF_INTEGER; return add(leaf);
    case Kind::unsigned_integer: leaf.kind = SCALIDE_LEAF_UNSIGNED; return add(leaf);
    case Kind::real: leaf.kind = SCALIDE_LEAF_FLOAT; return add(leaf);
    case Kind::boolean: leaf.kind = SCALIDE_LEAF_BOOL; return add(leaf);
    case Kind::none: leaf.kind = SCALIDE_LEAF_NONE; return add(leaf);
    case Kind::text:
    case Kind::bytes:
        leaf.kind = token.kind == Kind::text ? SCALIDE_LEAF_TEXT : SCALIDE_LEAF_BYTES;
        leaf.bytes = token.size;
        if (token.kind == Kind::text && !is_utf8(reinterpret_cast<const char *>(token.data), token.size))
            return fail("a text of UTF-8 before this byte");
        leaf.data = put_text(token.data, token.size);
        return add(leaf);
    default: break;
    }
    if (token.extension == complex_extension) return complex_number(token, &leaf);
    if (token.extension != ndarray_extension && token.extension != scalar_extension)
        return fail("an extension of Flax (1, 2 or 3) before this byte");
    leaf.kind = token.extension == ndarray_extension ? SCALIDE_LEAF_ARRAY : SCALIDE_LEAF_SCALAR;
    return array(token, &leaf) && add(leaf);
}

/// The state while one file is read.
struct Reading {
    FileMessage message;
    char separator;
    void *text = nullptr; ///< the file
    uint64_t bytes = 0;
    scalide_msgpack *result = nullptr;
    scalide_status failure = SCALIDE_FILE_ERROR;
};

bool read_file(Reading &reading) {
    const File file(reading.message.path, O_RDONLY);
    if (file.is_open() && file.size(&reading.bytes)) {
        reading.text = allocate(reading.bytes);
        if (!reading.text) {
            reading.failure = SCALIDE_OUT_OF_MEMORY;
            reading.message.begin() << "out of memory: cannot allocate the file (" << reading.bytes << " bytes).";
            return false;
        }
        if (file.read_at(0, reading.text, reading.bytes)) return true;
    }
    const int error = errno;
    Text text = reading.message.begin() << "cannot read this file: ";
    if (error == not_a_file) {
        text << "it is a pipe or a device. Save the arrays to a regular file.";
    } else {
        print_system_error(text, error) << "Check the path.";
    }
    return false;
}

uint64_t lay_out(scalide_msgpack &result, Content &content, void *memory) {
    Carver carver(memory);
    carver.take<scalide_msgpack>(1);
    result.leaves = content.leaves = carver.take<scalide_leaf>(content.leaf_count);
    result.by_name = carver.take<uint64_t>(content.leaf_count);
    content.names = carver.take<char>(content.name_bytes);
    content.data = carver.take<char>(content.data_bytes);
    return carver.bytes();
}

/// Reads the tree twice: the first pass measures, the second fills the tables.
bool read_tree(Reading &reading) {
    const auto *text = static_cast<const uint8_t *>(reading.text);
    Content content;
    if (!TreeReader(reading.message, text, reading.bytes, reading.separator).read(&content)) return false;
    scalide_msgpack result = {nullptr, content.leaf_count, nullptr};
    void *memory = allocate(lay_out(result, content, nullptr));
    if (!memory) {
        reading.failure = SCALIDE_OUT_OF_MEMORY;
        reading.message.begin() << "out of memory: cannot allocate the arrays.";
        return false;
    }
    lay_out(result, content, memory);
    reading.result = static_cast<scalide_msgpack *>(memory);
    *reading.result = result;
    content.leaf_count = content.name_bytes = content.data_bytes = 0;
    return TreeReader(reading.message, text, reading.bytes, reading.separator).read(&content);
}

bool fail_for_name(const Reading &reading, const char *name) {
    (reading.message.begin() << "leaf '").name(name)
        << "': another leaf or dict has this name. The file is damaged, or its keys need another separator.";
    return false;
}

/// True if the first `size` bytes of `name` are the name of a leaf.
bool has_leaf(const scalide_msgpack &result, const char *name, size_t size) {
    const auto compare = [&](uint64_t i) {
        const char *other = result.leaves[i].name;
        const int order = std::strncmp(other, name, size);
        return order != 0 ? order : other[size] != 0;
    };
    const uint64_t *end = result.by_name + result.count;
    const uint64_t *place = std::partition_point<const uint64_t *>(result.by_name, end, [&](uint64_t i) { return compare(i) < 0; });
    return place != end && compare(*place) == 0;
}

bool check_names(const Reading &reading) {
    const scalide_msgpack &result = *reading.result;
    sort_names(result.by_name, result.count, [&](uint64_t i) { return result.leaves[i].name; });
    for (uint64_t i = 0; i < result.count; ++i) {
        const char *name = result.leaves[result.by_name[i]].name;
        if (i > 0 && std::strcmp(name, result.leaves[result.by_name[i - 1]].name) == 0) return fail_for_name(reading, name);
        for (const char *at = std::strchr(name, reading.separator); at && *at; at = std::strchr(at + 1, reading.separator))
            if (has_leaf(result, name, static_cast<size_t>(at - name))) return fail_for_name(reading, name);
    }
    return true;
}

} // namespace

scalide_status scalide_msgpack_read(const char *path, char separator, scalide_msgpack **file, char *message, size_t message_size) {
    if (!file) return refuse_null(message, message_size, "file");
    *file = nullptr;
    if (!path) return refuse_null(message, message_size, "path");
    Reading reading = {{path, message, message_size}, separator};
    const bool good = read_file(reading) && read_tree(reading) && check_names(reading);
    release(reading.text);
    if (good) {
        *file = reading.result;
        return SCALIDE_OK;
    }
    scalide_msgpack_close(reading.result);
    return reading.failure;
}

void scalide_msgpack_close(scalide_msgpack *file) { release(file); }

size_t scalide_msgpack_count(const scalide_msgpack *file) { return file ? file->count : 0; }

const scalide_leaf *scalide_msgpack_leaf(const scalide_msgpack *file, size_t index) {
    return index < scalide_msgpack_count(file) ? &file->leaves[index] : nullptr;
}

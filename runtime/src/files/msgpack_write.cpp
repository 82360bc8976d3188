#include "base/memory.h"
#include "base/strides.h"
#include "files/msgpack_format.h"
#include "files/new_file.h"
#include "files/utf8.h"
#include <algorithm>
#include <cstring>
#include <utility>

using namespace scalide;

namespace {

/// A node of the tree: the whole file, a dict, or a leaf.
struct Node {
    const char *key;
    uint32_t key_bytes;
    const scalide_leaf *leaf; ///< NULL: a dict
    bool is_scale;            ///< the scale of the leaf, not its data
    uint32_t parent;
    uint32_t first, last, next; ///< nodes; 0: none
    uint32_t count;             ///< children
};

/// The state while one file is written.
struct Writing {
    FileMessage message;
    const scalide_leaf *leaves;
    size_t count;
    char separator;
    uint64_t chunk_bytes;
    Node *nodes = nullptr;
    uint32_t *table = nullptr; ///< children by parent and key; 0: an empty place
    uint64_t table_size = 1;   ///< a power of two
    uint32_t node_count = 0;
    scalide_status failure = SCALIDE_INVALID_ARGUMENT;
};

uint64_t bytes_of(const scalide_array &array) {
    uint64_t bytes = scalide_dtype_size(array.dtype);
    for (int32_t axis = 0; axis < array.rank; ++axis) bytes *= static_cast<uint64_t>(array.extent[axis]);
    return bytes;
}

bool has_good_shape(const scalide_array &array) {
    if (array.rank < 0 || array.rank > SCALIDE_MAX_RANK) return false;
    auto bytes = static_cast<int64_t>(std::max<size_t>(scalide_dtype_size(array.dtype), 1));
    for (int32_t axis = 0; axis < array.rank; ++axis)
        if (array.extent[axis] < 0 || __builtin_mul_overflow(bytes, array.extent[axis], &bytes)) return false;
    return true;
}

/// Returns what is wrong with a leaf, or NULL.
const char *wrong_with(const scalide_leaf &leaf) {
    if (!leaf.name || !is_utf8(leaf.name)) return "name must be UTF-8";
    if (leaf.kind < 0 || leaf.kind >= SCALIDE_LEAF_KIND_COUNT) return "kind must be a scalide_leaf_kind";
    const bool has_data = leaf.data || leaf.bytes == 0;
    if (leaf.kind == SCALIDE_LEAF_TEXT || leaf.kind == SCALIDE_LEAF_BYTES) {
        if (!has_data || leaf.bytes > UINT32_MAX) return "data must point to fewer than 2^32 bytes";
        const bool is_text = leaf.kind == SCALIDE_LEAF_BYTES || is_utf8(static_cast<const char *>(leaf.data), leaf.bytes);
        return is_text ? nullptr : "data must be UTF-8";
    }
    if (leaf.kind != SCALIDE_LEAF_ARRAY && leaf.kind != SCALIDE_LEAF_SCALAR) return nullptr;
    const scalide_array &array = leaf.array;
    if (!has_good_shape(array)) return "shape must have a rank in [0, 8], extents of at least 0 and fewer than 2^63 bytes";
    if (leaf.kind == SCALIDE_LEAF_SCALAR && array.rank != 0) return "a scalar must have rank 0";
    if (array.dtype < 0) return leaf.dtype && has_data && leaf.bytes < UINT32_MAX / 2 ? nullptr : "dtype and data must be given";
    if (scalide_dtype_size(array.dtype) == 0) return "dtype must be a scalide_dtype";
    if (bytes_of(array) == 0) return nullptr;
    if (!is_dense(array)) return "strides must be dense and row-major";
    return array.data ? nullptr : "data must point to memory";
}

bool check_leaves(const Writing &writing) {
    for (size_t i = 0; i < writing.count; ++i) {
        const char *wrong = wrong_with(writing.leaves[i]);
        if (!wrong) continue;
        writing.message.begin() << "leaf " << uint64_t(i) << ": " << wrong << ". Fill in the leaf as scalide/msgpack.h says.";
        return false;
    }
    return true;
}

/// Returns the place of a child in the table of children: of the child with this key, or an empty place.
uint32_t *place_of_child(const Writing &writing, uint32_t parent, const char *key, size_t size) {
    uint64_t hash = (parent + 1) * 0x9E3779B97F4A7C15u;
    for (size_t i = 0; i < size; ++i) hash = (hash ^ static_cast<unsigned char>(key[i])) * 0x100000001B3u;
    for (uint64_t slot = hash ^ hash >> 29;; ++slot) {
        uint32_t *place = writing.table + (slot & (writing.table_size - 1));
        const Node &node = writing.nodes[*place];
        if (*place == 0 || (node.parent == parent && node.key_bytes == size && std::memcmp(node.key, key, size) == 0)) return place;
    }
}

/// Returns the child of a node with this key, or 0.
uint32_t find_child(const Writing &writing, uint32_t parent, const char *key, size_t size) {
    return *place_of_child(writing, parent, key, size);
}

uint32_t add_child(Writing &writing, uint32_t parent, const char *key, size_t size) {
    const uint32_t made = writing.node_count++;
    *place_of_child(writing, parent, key, size) = made;
    Node &node = writing.nodes[parent];
    writing.nodes[made] = {key, static_cast<uint32_t>(size), nullptr, false, parent, 0, 0, 0, 0};
    if (node.last) writing.nodes[node.last].next = made;
    node.last = made;
    if (!node.first) node.first = made;
    ++node.count;
    return made;
}

bool add_leaf(Writing &writing, const scalide_leaf &leaf) {
    uint32_t node = 0;
    int levels = 0;
    bool is_new = *leaf.name == 0 && writing.node_count == 1;
    for (const char *at = leaf.name; *leaf.name;) {
        const char *end = std::strchr(at, writing.separator);
        const size_t size = end && *end ? static_cast<size_t>(end - at) : std::strlen(at);
        if (writing.nodes[node].leaf) break; // a leaf has no children
        const uint32_t child = find_child(writing, node, at, size);
        is_new = child == 0;
        node = is_new ? add_child(writing, node, at, size) : child;
        if (++levels > most_levels) break;
        if (!at[size]) {
            at = nullptr;
            break;
        }
        at += size + 1;
        is_new = false;
    }
    const bool is_scaled = leaf.array.scale && leaf.kind == SCALIDE_LEAF_ARRAY;
    if (is_new && levels + is_scaled <= most_levels && !writing.nodes[0].leaf) {
        writing.nodes[node].leaf = &leaf;
        if (!is_scaled) return true;
        writing.nodes[node].leaf = nullptr;
        writing.nodes[add_child(writing, node, "data", 4)].leaf = &leaf;
        const uint32_t scale = add_child(writing, node, "scale", 5);
        writing.nodes[scale].leaf = &leaf;
        writing.nodes[scale].is_scale = true;
        return true;
    }
    (writing.message.begin() << "leaf '").name(leaf.name)
        << "': a name must stand once, be no dict of other names, and have at most 64 keys. Rename it.";
    return false;
}

bool make_tree(Writing &writing) {
    uint64_t most = 1;
    for (size_t i = 0; i < writing.count; ++i) {
        most += 3;
        for (const char *at = writing.leaves[i].name; *at; ++at) most += *at == writing.separator;
    }
    while (writing.table_size < 2 * most) writing.table_size *= 2;
    if (most < UINT32_MAX) writing.nodes = static_cast<Node *>(allocate(most * sizeof(Node)));
    if (writing.nodes) writing.table = static_cast<uint32_t *>(allocate(writing.table_size * sizeof(uint32_t)));
    if (!writing.table) {
        writing.failure = SCALIDE_OUT_OF_MEMORY;
        writing.message.begin() << "out of memory: cannot allocate the tree of names.";
        return false;
    }
    std::memset(writing.table, 0, writing.table_size * sizeof(uint32_t));
    writing.nodes[0] = {"", 0, nullptr, false, 0, 0, 0, 0, 0};
    writing.node_count = 1;
    for (size_t i = 0; i < writing.count; ++i)
        if (!add_leaf(writing, writing.leaves[i])) return false;
    return true;
}

/// Writes values with the shortest codes, as the package msgpack does.
class ValueWriter {
public:
    ValueWriter(NewFile &file, uint64_t chunk_bytes) : file_(file), chunk_bytes_(chunk_bytes) {}

    bool node(const Writing &writing, uint32_t index);
    /// Writes what is still in the buffer.
    bool flush() { return file_.write(buffer_, std::exchange(used_, 0)); }

private:
    bool put(const void *memory, uint64_t bytes) {
        if (bytes > sizeof(buffer_) - used_ && !flush()) return false;
        if (bytes > sizeof(buffer_)) return file_.write(memory, bytes);
        if (bytes > 0) std::memcpy(buffer_ + used_, memory, bytes);
        used_ += bytes;
        return true;
    }
    bool code(uint8_t code, uint64_t number = 0, int bytes = 0) {
        uint8_t memory[9] = {code};
        for (int i = 0; i < bytes; ++i) memory[1 + i] = static_cast<uint8_t>(number >> (8 * (bytes - 1 - i)));
        return put(memory, 1 + static_cast<uint64_t>(bytes));
    }
    bool sized(uint8_t first, uint64_t size) { // the codes of 1, 2 and 4 bytes follow each other
        const int log = size < 0x100 ? 0 : size < 0x10000 ? 1 : 2;
        return code(static_cast<uint8_t>(first + log), size, 1 << log);
    }
    bool map(uint64_t count) {
        if (count < 16) return code(static_cast<uint8_t>(0x80 | count));
        return count < 0x10000 ? code(0xde, count, 2) : code(0xdf, count, 4);
    }
    bool text(const char *text, uint64_t size) {
        const bool good = size < 32 ? code(static_cast<uint8_t>(0xa0 | size)) : sized(0xd9, size);
        return good && put(text, size);
    }
    bool text(const char *text) { return this->text(text, std::strlen(text)); }
    bool integer(int64_t value);
    bool real(double value) {
        uint64_t bits;
        std::memcpy(&bits, &value, sizeof(bits));
        return code(0xcb, bits, 8);
    }
    bool extension(int8_t type, uint64_t size) {
        const bool is_fixed = size == 1 || size == 2 || size == 4 || size == 8 || size == 16;
        const int log = size == 1 ? 0 : size == 2 ? 1 : size == 4 ? 2 : size == 8 ? 3 : 4;
        const bool good = is_fixed ? code(static_cast<uint8_t>(0xd4 + log)) : sized(0xc7, size);
        return good && code(static_cast<uint8_t>(type));
    }
    bool array(int8_t type, const char *dtype, const scalide_array &array, const void *data, uint64_t bytes);
    bool chunks(const char *dtype, const scalide_array &array);
    bool leaf(const scalide_leaf &leaf, bool is_scale);

    NewFile &file_;
    uint64_t chunk_bytes_, used_ = 0;
    uint8_t buffer_[4096];
};

/// Returns the bytes of an unsigned number in the format.
uint64_t bytes_of_number(uint64_t value) {
    return value < 0x80 ? 1 : value < 0x100 ? 2 : value < 0x10000 ? 3 : value <= UINT32_MAX ? 5 : 9;
}

bool ValueWriter::integer(int64_t value) {
    const auto bits = static_cast<uint64_t>(value);
    if (value >= 0) {
        const uint64_t bytes = bytes_of_number(bits);
        const int log = bytes == 2 ? 0 : bytes == 3 ? 1 : bytes == 5 ? 2 : 3;
        return bytes == 1 ? code(static_cast<uint8_t>(value)) : code(static_cast<uint8_t>(0xcc + log), bits, 1 << log);
    }
    if (value >= -32) return code(static_cast<uint8_t>(value));
    const int log = value >= INT8_MIN ? 0 : value >= INT16_MIN ? 1 : value >= INT32_MIN ? 2 : 3;
    return code(static_cast<uint8_t>(0xd0 + log), bits, 1 << log);
}

bool ValueWriter::array(int8_t type, const char *dtype, const scalide_array &array, const void *data, uint64_t bytes) {
    const uint64_t name_bytes = std::strlen(dtype), rank = static_cast<uint64_t>(array.rank);
    uint64_t size = 2 + (name_bytes < 32 ? 1 : 2) + name_bytes + (bytes < 0x100 ? 2 : bytes < 0x10000 ? 3 : 5) + bytes;
    for (uint64_t axis = 0; axis < rank; ++axis) size += bytes_of_number(static_cast<uint64_t>(array.extent[axis]));
    bool good = extension(type, size) && code(0x93) && code(static_cast<uint8_t>(0x90 | rank));
    for (uint64_t axis = 0; good && axis < rank; ++axis) good = integer(array.extent[axis]);
    return good && text(dtype, name_bytes) && sized(0xc4, bytes) && put(data, bytes);
}

bool print_number_key(char (&key)[24], uint64_t number) { return Text(key, sizeof(key)).operator<<(number).size() > 0; }

bool ValueWriter::chunks(const char *dtype, const scalide_array &whole) {
    const uint64_t width = scalide_dtype_size(whole.dtype), elements = bytes_of(whole) / width;
    const uint64_t of_chunk = std::max<uint64_t>(chunk_bytes_ / width, 1), count = (elements + of_chunk - 1) / of_chunk;
    char key[24];
    bool good = map(3) && text(chunked_key) && code(0xc3) && text(shape_key) && map(static_cast<uint64_t>(whole.rank));
    for (int32_t axis = 0; good && axis < whole.rank; ++axis)
        good = print_number_key(key, static_cast<uint64_t>(axis)) && text(key) && integer(whole.extent[axis]);
    good = good && text(chunks_key) && map(count);
    for (uint64_t i = 0; good && i < count; ++i) {
        const auto length = static_cast<int64_t>(std::min(of_chunk, elements - i * of_chunk));
        const char *data = static_cast<const char *>(whole.data) + i * of_chunk * width;
        const scalide_array part = scalide_dense_array(nullptr, nullptr, whole.dtype, 1, &length);
        good = print_number_key(key, i) && text(key) && array(ndarray_extension, dtype, part, data, bytes_of(part));
    }
    return good;
}

bool ValueWriter::leaf(const scalide_leaf &leaf, bool is_scale) {
    switch (leaf.kind) {
    case SCALIDE_LEAF_INTEGER: return integer(leaf.integer);
    case SCALIDE_LEAF_UNSIGNED: return leaf.integer >= 0 ? integer(leaf.integer) : code(0xcf, static_cast<uint64_t>(leaf.integer), 8);
    case SCALIDE_LEAF_FLOAT: return real(leaf.number);
    case SCALIDE_LEAF_COMPLEX: return extension(complex_extension, 19) && code(0x92) && real(leaf.number) && real(leaf.imaginary);
    case SCALIDE_LEAF_BOOL: return code(leaf.integer ? 0xc3 : 0xc2);
    case SCALIDE_LEAF_NONE: return code(0xc0);
    case SCALIDE_LEAF_TEXT: return text(static_cast<const char *>(leaf.data), leaf.bytes);
    case SCALIDE_LEAF_BYTES: return sized(0xc4, leaf.bytes) && put(leaf.data, leaf.bytes);
    case SCALIDE_LEAF_EMPTY: return map(0);
    default: break;
    }
    if (is_scale) {
        const scalide_array scale = scalide_dense_array(leaf.array.scale, nullptr, SCALIDE_F32, 0, nullptr);
        return array(ndarray_extension, NumpyName(SCALIDE_F32).text, scale, scale.data, sizeof(float));
    }
    if (leaf.array.dtype < 0)
        return array(static_cast<int8_t>(leaf.kind == SCALIDE_LEAF_ARRAY ? ndarray_extension : scalar_extension), leaf.dtype, leaf.array,
                     leaf.data, leaf.bytes);
    const NumpyName name(leaf.array.dtype);
    const uint64_t bytes = bytes_of(leaf.array);
    if (leaf.kind == SCALIDE_LEAF_SCALAR) return array(scalar_extension, name.text, leaf.array, leaf.array.data, bytes);
    return bytes > chunk_bytes_ ? chunks(name.text, leaf.array) : array(ndarray_extension, name.text, leaf.array, leaf.array.data, bytes);
}

bool ValueWriter::node(const Writing &writing, uint32_t index) {
    const Node &node = writing.nodes[index];
    if (node.leaf) return leaf(*node.leaf, node.is_scale);
    bool good = map(node.count);
    for (uint32_t child = node.first; good && child != 0; child = writing.nodes[child].next)
        good = text(writing.nodes[child].key, writing.nodes[child].key_bytes) && this->node(writing, child);
    return good;
}

bool write_file(Writing &writing) {
    NewFile file(writing.message.path);
    ValueWriter writer(file, writing.chunk_bytes);
    if (writer.node(writing, 0) && writer.flush() && file.publish()) return true;
    writing.failure = file.explain(writing.message);
    return false;
}

} // namespace

scalide_status scalide_msgpack_write(const char *path, const scalide_leaf *leaves, size_t count, char separator, uint64_t chunk_bytes,
                                     char *message, size_t message_size) {
    if (!path || (count > 0 && !leaves)) return refuse_null(message, message_size, path ? "leaves" : "path");
    const uint64_t chunk = chunk_bytes > 0 ? std::min(chunk_bytes, default_chunk_bytes) : default_chunk_bytes;
    Writing writing = {{path, message, message_size}, leaves, count, separator, chunk};
    const bool good = check_leaves(writing) && make_tree(writing) && write_file(writing);
    release(writing.nodes);
    release(writing.table);
    return good ? SCALIDE_OK : writing.failure;
}

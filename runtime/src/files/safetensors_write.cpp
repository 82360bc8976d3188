#include "base/memory.h"
#include "base/strides.h"
#include "files/file.h"
#include "scalide/safetensors.h"
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>
#include <utility>

using namespace scalide;

namespace {

/// A tensor of the file. A scaled tensor of the caller becomes two entries, with the suffixes of `part_suffixes`.
struct Entry {
    const char *name, *suffix;
    const scalide_array *array; ///< the array whose data this is; nullptr for the scale
    const void *data;
    uint64_t bytes;
};

/// The state while one file is written.
struct Writing {
    FileMessage message;
    const scalide_safetensors_content &content;
    Entry *entries, **by_name;
    uint64_t entry_count;
    char *header, *temporary;
    uint64_t header_bytes;
    scalide_status failure;
};

std::atomic<uint64_t> files_begun{0};

bool out_of_memory(Writing &writing, uint64_t bytes) {
    writing.failure = SCALIDE_OUT_OF_MEMORY;
    writing.message.begin() << "out of memory: cannot allocate the header (" << bytes << " bytes).";
    return false;
}

bool has_good_shape(const scalide_array &array) {
    if (array.rank < 0 || array.rank > SCALIDE_MAX_RANK) return false;
    auto bytes = static_cast<int64_t>(scalide_dtype_size(array.dtype));
    for (int32_t axis = 0; axis < array.rank; ++axis) {
        if (array.extent[axis] < 0 || __builtin_mul_overflow(bytes, array.extent[axis], &bytes)) return false;
    }
    return true;
}

uint64_t data_bytes(const scalide_array &array) {
    uint64_t bytes = scalide_dtype_size(array.dtype);
    for (int32_t axis = 0; axis < array.rank; ++axis) bytes *= static_cast<uint64_t>(array.extent[axis]);
    return bytes;
}

/// Returns the size in bytes of the first UTF-8 character, or 0 if it is invalid. A character must have its shortest form and be no
/// surrogate.
size_t size_of_character(const char *text) {
    const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
    if (byte(0) < 0x80) return 1;
    if (byte(0) < 0xc2 || byte(0) > 0xf4) return 0;
    const size_t size = byte(0) < 0xe0 ? 2 : byte(0) < 0xf0 ? 3 : 4;
    uint32_t code = byte(0) & (0x7fu >> size);
    for (size_t i = 1; i < size; ++i) { // stops at the terminating zero
        if ((byte(i) & 0xc0) != 0x80) return 0;
        code = code << 6 | (byte(i) & 0x3fu);
    }
    constexpr uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    return code < smallest[size] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000) ? 0 : size;
}

/// JSON requires UTF-8.
bool is_utf8(const char *text) {
    for (size_t size; *text; text += size) {
        size = size_of_character(text);
        if (size == 0) return false;
    }
    return true;
}

/// Returns what is wrong with a tensor, or nullptr.
const char *wrong_with(const scalide_tensor &tensor) {
    const scalide_array &array = tensor.array;
    if (!tensor.name || std::strcmp(tensor.name, metadata_key) == 0) return "name must be text other than __metadata__";
    if (!is_utf8(tensor.name)) return "name must be UTF-8";
    if (scalide_dtype_size(array.dtype) == 0) return "dtype must be a scalide_dtype";
    if (!has_good_shape(array)) return "shape must have a rank in [0, 8], extents of at least 0 and fewer than 2^63 bytes";
    if (data_bytes(array) == 0) return nullptr;
    if (!is_dense(array)) return "strides must be dense and row-major";
    return array.data ? nullptr : "data must point to memory";
}

bool check_content(const Writing &writing) {
    const scalide_safetensors_content &content = writing.content;
    for (size_t i = 0; i < content.tensor_count; ++i) {
        const char *wrong = wrong_with(content.tensors[i]);
        if (!wrong) continue;
        writing.message.begin() << "tensor " << uint64_t(i) << ": " << wrong << ". Fill in the array with scalide_dense_array.";
        return false;
    }
    for (size_t i = 0; i < content.metadata_count; ++i) {
        const scalide_metadata &entry = content.metadata[i];
        const bool are_texts = entry.key && entry.value && is_utf8(entry.key) && is_utf8(entry.value);
        if (are_texts && std::strcmp(entry.key, version_key) != 0) continue;
        writing.message.begin() << "metadata " << uint64_t(i) << ": key and value must be UTF-8 text, and the key must not be "
                                << version_key << ". Leave the entry out.";
        return false;
    }
    return true;
}

/// Returns the character at `index` of name + suffix.
unsigned char character(const Entry &entry, size_t index) {
    const size_t length = std::strlen(entry.name);
    return static_cast<unsigned char>(index < length ? entry.name[index] : entry.suffix[index - length]);
}

int compare_names(const Entry &a, const Entry &b) {
    for (size_t i = 0;; ++i) {
        const unsigned char x = character(a, i), y = character(b, i);
        if (x != y || x == 0) return x - y;
    }
}

bool make_entries(Writing &writing) {
    const uint64_t most = 2 * writing.content.tensor_count;
    Carver sizes;
    sizes.take<Entry>(most);
    sizes.take<Entry *>(most);
    void *memory = allocate(sizes.bytes());
    if (!memory) return out_of_memory(writing, sizes.bytes());
    Carver carver(memory);
    writing.entries = carver.take<Entry>(most);
    writing.by_name = carver.take<Entry *>(most);
    for (size_t i = 0; i < writing.content.tensor_count; ++i) {
        const scalide_tensor &tensor = writing.content.tensors[i];
        const scalide_array &array = tensor.array;
        writing.entries[writing.entry_count++] = {tensor.name, array.scale ? part_suffixes[0][0] : "", &array, array.data,
                                                  data_bytes(array)};
        if (array.scale) writing.entries[writing.entry_count++] = {tensor.name, part_suffixes[0][1], nullptr, array.scale, sizeof(float)};
    }
    return true;
}

void sort_by_name(const Writing &writing) {
    for (uint64_t i = 0; i < writing.entry_count; ++i) writing.by_name[i] = &writing.entries[i];
    std::sort(writing.by_name, writing.by_name + writing.entry_count,
              [](const Entry *a, const Entry *b) { return compare_names(*a, *b) < 0; });
}

/// Returns the first index after `from` whose tensor has the same name as the tensor before it, or entry_count if there is none.
uint64_t find_same_name(const Writing &writing, uint64_t from) {
    uint64_t i = from + 1;
    while (i < writing.entry_count && compare_names(*writing.by_name[i - 1], *writing.by_name[i]) != 0) ++i;
    return std::min(i, writing.entry_count);
}

/// Gives both parts of the scaled tensor that contains `part` their alternative names.
void rename_parts(const Writing &writing, const Entry &part) {
    Entry *const data = writing.entries + (&part - writing.entries) - (part.array ? 0 : 1);
    for (int i = 0; i < 2; ++i) data[i].suffix = part_suffixes[1][i];
}

bool check_names(const Writing &writing) {
    sort_by_name(writing);
    for (uint64_t i = 0; (i = find_same_name(writing, i)) < writing.entry_count;) {
        const Entry *part = writing.by_name[i - 1], *whole = writing.by_name[i];
        if (whole->suffix[0]) std::swap(part, whole);
        // The part gets another name, the whole tensor keeps its name
        if (part->suffix[0] && !whole->suffix[0]) rename_parts(writing, *part);
    }
    sort_by_name(writing);
    const uint64_t same = find_same_name(writing, 0);
    if (same == writing.entry_count) return true;
    const Entry &entry = *writing.by_name[same];
    (writing.message.begin() << "tensor '").name(entry.name) << entry.suffix << "': two tensors have this name. Rename one of them.";
    return false;
}

/// Prints the characters of a JSON string.
Text &print_escaped(Text &text, const char *value) {
    constexpr char digits[] = "0123456789abcdef";
    for (; *value; ++value) {
        const auto code = static_cast<unsigned char>(*value);
        if (code < ' ') {
            text << "\\u00" << digits[code / 16] << digits[code % 16];
        } else {
            if (*value == '"' || *value == '\\') text << '\\';
            text << *value;
        }
    }
    return text;
}

void print_pair(Text &text, const char *key, const char *value) {
    print_escaped(text << '"', key) << "\":\"";
    print_escaped(text, value) << '"';
}

void print_header(Text &text, const Writing &writing) {
    text << "{\"" << metadata_key << "\":{";
    print_pair(text, version_key, version);
    for (size_t i = 0; i < writing.content.metadata_count; ++i) {
        text << ',';
        print_pair(text, writing.content.metadata[i].key, writing.content.metadata[i].value);
    }
    text << '}';
    uint64_t offset = 0;
    for (uint64_t i = 0; i < writing.entry_count; ++i) {
        const Entry &entry = writing.entries[i];
        print_escaped(text << ",\"", entry.name)
            << entry.suffix << "\":{\"dtype\":\"" << safetensors_name(entry.array ? entry.array->dtype : int32_t(SCALIDE_F32))
            << "\",\"shape\":[";
        for (int32_t axis = 0; entry.array && axis < entry.array->rank; ++axis) {
            if (axis > 0) text << ',';
            text << entry.array->extent[axis];
        }
        text << "],\"data_offsets\":[" << offset << ',' << offset + entry.bytes << "]}";
        offset += entry.bytes;
    }
    text << '}';
}

/// Writes the length and the JSON, padded with spaces so that the data starts at a multiple of 8.
bool make_header(Writing &writing) {
    Text measure(nullptr, 0);
    print_header(measure, writing);
    const uint64_t length = round_up(measure.size(), 8);
    writing.header_bytes = header_length_bytes + length;
    writing.header = static_cast<char *>(allocate(writing.header_bytes + 1));
    if (!writing.header) return out_of_memory(writing, writing.header_bytes + 1);
    for (uint64_t i = 0; i < header_length_bytes; ++i) writing.header[i] = static_cast<char>(length >> (8 * i));
    Text text(writing.header + header_length_bytes, length + 1);
    print_header(text, writing);
    std::memset(writing.header + header_length_bytes + measure.size(), ' ', length - measure.size());
    return true;
}

bool name_temporary(Writing &writing) {
    const size_t capacity = std::strlen(writing.message.path) + 64;
    writing.temporary = static_cast<char *>(allocate(capacity));
    if (!writing.temporary) return out_of_memory(writing, capacity);
    Text(writing.temporary, capacity) << writing.message.path << '.' << int64_t(getpid()) << '.' << files_begun.fetch_add(1) << ".tmp";
    return true;
}

bool write_temporary(const Writing &writing) {
    File file(writing.temporary, O_WRONLY | O_CREAT | O_EXCL);
    bool good = file.is_open() && file.write(writing.header, writing.header_bytes);
    for (uint64_t i = 0; good && i < writing.entry_count; ++i) good = file.write(writing.entries[i].data, writing.entries[i].bytes);
    return good && file.flush() && file.close();
}

bool replace_file(Writing &writing) {
    if (!is_replaceable(writing.message.path)) {
        writing.failure = SCALIDE_FILE_ERROR;
        writing.message.begin() << "cannot write this file: it is a folder or a device. Choose another path.";
        return false;
    }
    if (write_temporary(writing) && std::rename(writing.temporary, writing.message.path) == 0) return true;
    const int error = errno;
    unlink(writing.temporary);
    writing.failure = SCALIDE_FILE_ERROR;
    Text text = writing.message.begin() << "cannot write this file: ";
    print_system_error(text, error) << "Nothing was changed. Check the folder and the free space.";
    return false;
}

} // namespace

scalide_status scalide_safetensors_write(const char *path, const scalide_safetensors_content *content, char *message, size_t message_size) {
    if (!path || !content) return refuse_null(message, message_size, path ? "content" : "path");
    if (content->tensor_count > 0 && !content->tensors) return refuse_null(message, message_size, "tensors");
    if (content->metadata_count > 0 && !content->metadata) return refuse_null(message, message_size, "metadata");
    Writing writing = {{path, message, message_size}, *content, nullptr, nullptr, 0, nullptr, nullptr, 0, SCALIDE_INVALID_ARGUMENT};
    const bool good = check_content(writing) && make_entries(writing) && check_names(writing) && make_header(writing) &&
                      name_temporary(writing) && replace_file(writing);
    release(writing.temporary);
    release(writing.header);
    release(writing.entries);
    return good ? SCALIDE_OK : writing.failure;
}

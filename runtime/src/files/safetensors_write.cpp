#include "files/safetensors_write.h"
#include "base/memory.h"
#include "base/strides.h"
#include "files/json_text.h"
#include "files/new_file.h"
#include "files/utf8.h"
#include <algorithm>
#include <cstring>
#include <utility>

namespace scalide {

namespace {

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
unsigned char character(const FileEntry &entry, size_t index) {
    const size_t length = std::strlen(entry.name);
    return static_cast<unsigned char>(index < length ? entry.name[index] : entry.suffix[index - length]);
}

int compare_names(const FileEntry &a, const FileEntry &b) {
    for (size_t i = 0;; ++i) {
        const unsigned char x = character(a, i), y = character(b, i);
        if (x != y || x == 0) return x - y;
    }
}

bool make_entries(Writing &writing) {
    const uint64_t most = 2 * writing.content.tensor_count;
    Carver sizes;
    sizes.take<FileEntry>(most);
    sizes.take<FileEntry *>(most);
    void *memory = allocate(sizes.bytes());
    if (!memory) return out_of_memory(writing, sizes.bytes());
    Carver carver(memory);
    writing.entries = carver.take<FileEntry>(most);
    writing.by_name = carver.take<FileEntry *>(most);
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
              [](const FileEntry *a, const FileEntry *b) { return compare_names(*a, *b) < 0; });
}

/// Returns the first index after `from` whose tensor has the same name as the tensor before it, or entry_count if there is none.
uint64_t find_same_name(const Writing &writing, uint64_t from) {
    uint64_t i = from + 1;
    while (i < writing.entry_count && compare_names(*writing.by_name[i - 1], *writing.by_name[i]) != 0) ++i;
    return std::min(i, writing.entry_count);
}

/// Gives both parts of the scaled tensor that contains `part` their alternative names.
void rename_parts(const Writing &writing, const FileEntry &part) {
    FileEntry *const data = writing.entries + (&part - writing.entries) - (part.array ? 0 : 1);
    for (int i = 0; i < 2; ++i) data[i].suffix = part_suffixes[1][i];
}

bool check_names(const Writing &writing) {
    sort_by_name(writing);
    for (uint64_t i = 0; (i = find_same_name(writing, i)) < writing.entry_count;) {
        const FileEntry *part = writing.by_name[i - 1], *whole = writing.by_name[i];
        if (whole->suffix[0]) std::swap(part, whole);
        // The part gets another name, the whole tensor keeps its name
        if (part->suffix[0] && !whole->suffix[0]) rename_parts(writing, *part);
    }
    sort_by_name(writing);
    const uint64_t same = find_same_name(writing, 0);
    if (same == writing.entry_count) return true;
    const FileEntry &entry = *writing.by_name[same];
    (writing.message.begin() << "tensor '").name(entry.name) << entry.suffix << "': two tensors have this name. Rename one of them.";
    return false;
}

void print_pair(Text &text, const char *key, const char *value) {
    print_escaped(text << '"', key) << "\":\"";
    print_escaped(text, value) << '"';
}

/// The length and the JSON of a file with the entries [begin, end).
struct FileHeader {
    char *memory = nullptr;
    uint64_t bytes = 0;
    FileHeader() = default;
    FileHeader(const FileHeader &) = delete;
    FileHeader &operator=(const FileHeader &) = delete;
    ~FileHeader() { release(memory); }
};

void print_header(Text &text, const Writing &writing, uint64_t begin, uint64_t end) {
    text << "{\"" << metadata_key << "\":{";
    print_pair(text, version_key, version);
    for (size_t i = 0; i < writing.content.metadata_count; ++i) {
        text << ',';
        print_pair(text, writing.content.metadata[i].key, writing.content.metadata[i].value);
    }
    text << '}';
    uint64_t offset = 0;
    for (uint64_t i = begin; i < end; ++i) {
        const FileEntry &entry = writing.entries[i];
        print_name(text << ",\"", entry) << "\":{\"dtype\":\"" << safetensors_name(entry.array ? entry.array->dtype : int32_t(SCALIDE_F32))
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
bool make_header(Writing &writing, FileHeader &header, uint64_t begin, uint64_t end) {
    Text measure(nullptr, 0);
    print_header(measure, writing, begin, end);
    const uint64_t length = round_up(measure.size(), 8);
    header.bytes = header_length_bytes + length;
    header.memory = static_cast<char *>(allocate(header.bytes + 1));
    if (!header.memory) return out_of_memory(writing, header.bytes + 1);
    for (uint64_t i = 0; i < header_length_bytes; ++i) header.memory[i] = static_cast<char>(length >> (8 * i));
    Text text(header.memory + header_length_bytes, length + 1);
    print_header(text, writing, begin, end);
    std::memset(header.memory + header_length_bytes + measure.size(), ' ', length - measure.size());
    return true;
}

} // namespace

Writing::~Writing() { release(entries); }

Text &print_name(Text &text, const FileEntry &entry) { return print_escaped(text, entry.name) << entry.suffix; }

bool prepare(Writing &writing) { return check_content(writing) && make_entries(writing) && check_names(writing); }

bool write_file(Writing &writing, const char *path, uint64_t begin, uint64_t end, bool flushes_folder) {
    FileHeader header;
    if (!make_header(writing, header, begin, end)) return false;
    NewFile file(path);
    bool good = file.write(header.memory, header.bytes);
    for (uint64_t i = begin; good && i < end; ++i) good = file.write(writing.entries[i].data, writing.entries[i].bytes);
    if (good && file.publish(flushes_folder)) return true;
    writing.failure = file.explain(writing.message);
    return false;
}

} // namespace scalide

using namespace scalide;

scalide_status scalide_safetensors_write(const char *path, const scalide_safetensors_content *content, char *message, size_t message_size) {
    if (!path || !content) return refuse_null(message, message_size, path ? "content" : "path");
    if (content->tensor_count > 0 && !content->tensors) return refuse_null(message, message_size, "tensors");
    if (content->metadata_count > 0 && !content->metadata) return refuse_null(message, message_size, "metadata");
    Writing writing({path, message, message_size}, *content);
    return prepare(writing) && write_file(writing, path, 0, writing.entry_count) ? SCALIDE_OK : writing.failure;
}

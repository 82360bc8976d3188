#include "base/memory.h"
#include "files/file.h"
#include "files/header_parser.h"
#include "files/safetensors_content.h"
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>

using namespace scalide;

namespace {

constexpr char damaged[] = ". The file is damaged: save it again.";

/// The state while one file is read.
struct Reading {
    FileMessage message;
    File file;
    uint64_t file_bytes, header_bytes;
    char *text, *pool;
    Header header;
    uint64_t *by_offset;
    scalide_safetensors *result;
    scalide_status failure;

    uint64_t data_start() const { return header_length_bytes + header_bytes; }
};

bool out_of_memory(Reading &reading, const char *what, uint64_t bytes) {
    reading.failure = SCALIDE_OUT_OF_MEMORY;
    reading.message.begin() << "out of memory: cannot allocate " << what << " (" << bytes << " bytes).";
    return false;
}

bool system_error(const Reading &reading) {
    const int error = errno;
    Text text = reading.message.begin() << "cannot read this file: ";
    if (error == not_a_file) {
        text << "it is a pipe or a device. Save the tensors to a regular file.";
        return false;
    }
    print_system_error(text, error) << "Check the path.";
    return false;
}

bool read_sizes(Reading &reading) {
    if (!reading.file.is_open() || !reading.file.size(&reading.file_bytes)) return system_error(reading);
    if (reading.file_bytes < header_length_bytes) {
        reading.message.begin() << "the file must begin with 8 bytes of header length, but it has " << reading.file_bytes << " bytes"
                                << damaged;
        return false;
    }
    unsigned char bytes[header_length_bytes];
    if (!reading.file.read_at(0, bytes, sizeof(bytes))) return system_error(reading);
    for (int i = 7; i >= 0; --i) reading.header_bytes = reading.header_bytes << 8 | bytes[i];
    if (reading.header_bytes > max_header_bytes) {
        reading.message.begin() << "the header must have at most " << max_header_bytes << " bytes, got " << reading.header_bytes
                                << ". The file is not in the safetensors format.";
        return false;
    }
    if (reading.header_bytes > reading.file_bytes - header_length_bytes) {
        reading.message.begin() << "the header has " << reading.header_bytes << " bytes, but the file has only " << reading.file_bytes
                                << damaged;
        return false;
    }
    return true;
}

bool parse_into(Reading &reading) {
    reading.header.tensor_count = reading.header.metadata_count = 0;
    return HeaderParser(reading.text, reading.header_bytes, reading.pool, reading.message).parse(&reading.header);
}

/// Places the tables of the result, followed by the tables that only reading needs. They are freed together.
uint64_t lay_out(Reading &reading, scalide_safetensors &result, void *memory) {
    Carver carver(memory);
    take_tables(carver, result, result.tensor_count);
    result.metadata = carver.take<scalide_metadata>(result.metadata_count);
    reading.pool = carver.take<char>(reading.header_bytes + 1);
    reading.header.tensors = carver.take<HeaderTensor>(result.tensor_count);
    reading.by_offset = carver.take<uint64_t>(result.tensor_count);
    return carver.bytes();
}

bool read_header(Reading &reading) {
    reading.text = static_cast<char *>(allocate(2 * reading.header_bytes));
    if (!reading.text) return out_of_memory(reading, "the header", 2 * reading.header_bytes);
    if (!reading.file.read_at(header_length_bytes, reading.text, reading.header_bytes)) return system_error(reading);
    reading.pool = reading.text + reading.header_bytes;
    if (!parse_into(reading)) return false;
    scalide_safetensors counts = {};
    counts.tensor_count = reading.header.tensor_count;
    counts.metadata_count = reading.header.metadata_count;
    const uint64_t bytes = lay_out(reading, counts, nullptr);
    void *memory = allocate(bytes);
    if (!memory) return out_of_memory(reading, "the table of tensors", bytes);
    reading.result = static_cast<scalide_safetensors *>(memory);
    *reading.result = counts;
    lay_out(reading, *reading.result, memory);
    reading.header.metadata = reading.result->metadata;
    return parse_into(reading);
}

Text complain(const Reading &reading, const HeaderTensor &tensor) {
    return (reading.message.begin() << "tensor '").name(tensor.name) << "': ";
}

bool is_skipped(const HeaderTensor &tensor) { return tensor.rank > SCALIDE_MAX_RANK || safetensors_dtype(tensor.dtype) < 0; }

bool check_size(const Reading &reading, const HeaderTensor &tensor) {
    if (is_skipped(tensor)) { // only the position of a skipped tensor is known
        if (tensor.end >= tensor.begin) return true;
        complain(reading, tensor) << "data_offsets must be ascending, got [" << tensor.begin << ", " << tensor.end << "]" << damaged;
        return false;
    }
    auto bytes = static_cast<int64_t>(scalide_dtype_size(safetensors_dtype(tensor.dtype)));
    bool fits = true;
    for (int32_t axis = 0; axis < tensor.rank; ++axis) fits = !__builtin_mul_overflow(bytes, tensor.extent[axis], &bytes) && fits;
    if (!fits) {
        complain(reading, tensor) << "the data of this shape must have fewer than 2^63 bytes" << damaged;
        return false;
    }
    if (tensor.end >= tensor.begin && tensor.end - tensor.begin == bytes) return true;
    complain(reading, tensor) << "data_offsets must span the " << bytes << " bytes of its shape, got [" << tensor.begin << ", "
                              << tensor.end << "]" << damaged;
    return false;
}

/// Checks that the tensors fill the data without overlap and without a gap.
bool check_places(Reading &reading) {
    const uint64_t count = reading.header.tensor_count;
    const HeaderTensor *tensors = reading.header.tensors;
    for (uint64_t i = 0; i < count; ++i) reading.by_offset[i] = i;
    std::sort(reading.by_offset, reading.by_offset + count, [tensors](uint64_t a, uint64_t b) {
        const HeaderTensor &x = tensors[a], &y = tensors[b];
        return x.begin != y.begin ? x.begin < y.begin : x.end != y.end ? x.end < y.end : a < b;
    });
    int64_t at = 0;
    for (uint64_t i = 0; i < count; ++i) {
        const HeaderTensor &tensor = tensors[reading.by_offset[i]];
        if (tensor.begin != at) {
            complain(reading, tensor) << "data must begin at byte " << at << ", where the previous tensor ends, got " << tensor.begin
                                      << damaged;
            return false;
        }
        at = tensor.end;
    }
    const uint64_t data_bytes = reading.file_bytes - reading.data_start();
    if (static_cast<uint64_t>(at) == data_bytes) return true;
    reading.message.begin() << "the header describes " << at << " bytes of data, but the file has " << data_bytes << damaged;
    return false;
}

void sort_by_name(Reading &reading) {
    const HeaderTensor *tensors = reading.header.tensors;
    sort_names(reading.result->by_name, reading.result->tensor_count, [tensors](uint64_t i) { return tensors[i].name; });
}

bool check_names(Reading &reading) {
    const scalide_safetensors &result = *reading.result;
    const HeaderTensor *tensors = reading.header.tensors;
    sort_by_name(reading);
    for (uint64_t i = 1; i < result.tensor_count; ++i) {
        const HeaderTensor &tensor = tensors[result.by_name[i]];
        if (std::strcmp(tensor.name, tensors[result.by_name[i - 1]].name) != 0) continue;
        complain(reading, tensor) << "two tensors have this name" << damaged;
        return false;
    }
    return true;
}

/// Returns false for a version that is newer than this runtime, and for a text that is no version.
bool is_known_version(const char *text) {
    int64_t number = 0, newest = version[0] - '0';
    const char *at = text;
    for (; *at >= '0' && *at <= '9' && number <= newest; ++at) number = 10 * number + (*at - '0');
    return at != text && *at == 0 && number <= newest;
}

bool check_version(const Reading &reading) {
    const char *found = scalide_safetensors_metadata(reading.result, version_key);
    if (!found || is_known_version(found)) return true;
    (reading.message.begin() << "metadata '" << version_key << "' must be at most " << version << ", got ").name(found)
        << ". Read the file with a newer runtime.";
    return false;
}

bool check_header(Reading &reading) {
    for (uint64_t i = 0; i < reading.header.tensor_count; ++i) {
        if (!check_size(reading, reading.header.tensors[i])) return false;
    }
    return check_names(reading) && check_places(reading) && check_version(reading);
}

/// Moves skipped tensors out of the table of tensors, after the whole header has been checked.
void set_apart(Reading &reading) {
    scalide_safetensors &result = *reading.result;
    const uint64_t count = result.tensor_count;
    result.tensor_count = 0;
    for (uint64_t i = 0; i < count; ++i) {
        const HeaderTensor tensor = reading.header.tensors[i];
        if (is_skipped(tensor)) {
            result.skipped[result.skipped_count++] = {tensor.name, tensor.dtype, tensor.rank};
        } else {
            reading.header.tensors[result.tensor_count++] = tensor;
        }
    }
    sort_by_name(reading);
}

/// Describes tensor number `i`, whose data starts at `data`.
void set_tensor(Reading &reading, uint64_t i, void *data) {
    const HeaderTensor &tensor = reading.header.tensors[i];
    reading.result->tensors[i] = {tensor.name,
                                  scalide_dense_array(data, nullptr, safetensors_dtype(tensor.dtype), tensor.rank, tensor.extent)};
}

bool map_data(Reading &reading) {
    scalide_safetensors &result = *reading.result;
    set_apart(reading);
    result.data = reading.file.map(reading.file_bytes);
    if (!result.data) return system_error(reading);
    result.mapped_bytes = reading.file_bytes;
    char *data = static_cast<char *>(result.data) + reading.data_start();
    for (uint64_t i = 0; i < result.tensor_count; ++i) set_tensor(reading, i, data + reading.header.tensors[i].begin);
    return true;
}

bool read_data(Reading &reading) {
    scalide_safetensors &result = *reading.result;
    set_apart(reading);
    uint64_t bytes = 0;
    for (uint64_t i = 0; i < result.tensor_count; ++i) {
        const HeaderTensor &tensor = reading.header.tensors[i];
        bytes += round_up(static_cast<uint64_t>(tensor.end - tensor.begin), memory_alignment);
    }
    result.data = allocate(bytes);
    if (!result.data) return out_of_memory(reading, "the data", bytes);
    auto *to = static_cast<char *>(result.data);
    for (uint64_t i = 0; i < result.tensor_count; ++i) {
        const HeaderTensor &tensor = reading.header.tensors[i];
        const auto size = static_cast<uint64_t>(tensor.end - tensor.begin);
        if (!reading.file.read_at(reading.data_start() + static_cast<uint64_t>(tensor.begin), to, size)) return system_error(reading);
        set_tensor(reading, i, to);
        to += round_up(size, memory_alignment);
    }
    return true;
}

const scalide_array *find_exactly(const scalide_safetensors *file, const char *name, const char *suffix) {
    const size_t length = std::strlen(name);
    // Compares `name + suffix` with another name.
    const auto compare = [&](const char *other) {
        const int order = std::strncmp(other, name, length);
        return order != 0 ? order : std::strcmp(other + length, suffix);
    };
    uint64_t *const end = file->by_name + file->tensor_count;
    const uint64_t *place = std::partition_point(file->by_name, end, [&](uint64_t i) { return compare(file->tensors[i].name) < 0; });
    return place != end && compare(file->tensors[*place].name) == 0 ? &file->tensors[*place].array : nullptr;
}

const scalide_skipped_tensor *find_skipped(const scalide_safetensors *file, const char *name, const char *suffix) {
    const size_t length = std::strlen(name);
    for (uint64_t i = 0; i < file->skipped_count; ++i) {
        const scalide_skipped_tensor &tensor = file->skipped[i];
        if (std::strncmp(tensor.name, name, length) == 0 && std::strcmp(tensor.name + length, suffix) == 0) return &tensor;
    }
    return nullptr;
}

/// Returns the skipped tensor that is `name` or one of its parts.
const scalide_skipped_tensor *find_skipped(const scalide_safetensors *file, const char *name) {
    const scalide_skipped_tensor *found = find_skipped(file, name, "");
    for (const auto &suffixes : part_suffixes) {
        for (const char *suffix : suffixes) found = found ? found : find_skipped(file, name, suffix);
    }
    return found;
}

void explain_skipped(Text &text, const scalide_skipped_tensor &tensor) {
    text << "tensor '";
    text.name(tensor.name) << "': ";
    if (tensor.rank > SCALIDE_MAX_RANK) {
        text << "rank must be at most " << int32_t(SCALIDE_MAX_RANK) << ", got " << tensor.rank << ". Reshape the tensor.";
        return;
    }
    text << "dtype must be one of";
    for (int32_t dtype = 0; dtype < SCALIDE_DTYPE_COUNT; ++dtype) text << ' ' << safetensors_name(dtype);
    (text << ", got ").name(tensor.dtype) << ". Convert the tensor.";
}

scalide_status open_file(const char *path, scalide_safetensors **file, char *message, size_t message_size, bool (*take_data)(Reading &)) {
    if (!file) return refuse_null(message, message_size, "file");
    *file = nullptr;
    if (!path) return refuse_null(message, message_size, "path");
    Reading reading = {{path, message, message_size}, {path, O_RDONLY}, 0, 0, nullptr, nullptr, {}, nullptr, nullptr, SCALIDE_FILE_ERROR};
    const bool good = read_sizes(reading) && read_header(reading) && check_header(reading) && take_data(reading);
    release(reading.text);
    if (good) {
        *file = reading.result;
        return SCALIDE_OK;
    }
    scalide_safetensors_close(reading.result);
    return reading.failure;
}

} // namespace

scalide_status scalide_safetensors_read(const char *path, scalide_safetensors **file, char *message, size_t message_size) {
    return open_file(path, file, message, message_size, read_data);
}

scalide_status scalide_safetensors_map(const char *path, scalide_safetensors **file, char *message, size_t message_size) {
    return open_file(path, file, message, message_size, map_data);
}

void scalide_safetensors_close(scalide_safetensors *file) {
    if (!file) return;
    for (uint64_t i = 0; i < file->part_count; ++i) scalide_safetensors_close(file->parts[i]);
    scalide_msgpack_close(file->flax);
    if (file->mapped_bytes > 0) {
        File::unmap(file->data, file->mapped_bytes);
    } else {
        release(file->data);
    }
    release(file);
}

size_t scalide_safetensors_count(const scalide_safetensors *file) { return file ? file->tensor_count : 0; }

const scalide_tensor *scalide_safetensors_tensor(const scalide_safetensors *file, size_t index) {
    return index < scalide_safetensors_count(file) ? &file->tensors[index] : nullptr;
}

scalide_status scalide_safetensors_find(const scalide_safetensors *file, const char *name, scalide_array *array) {
    if (!file || !name || !array) return SCALIDE_INVALID_ARGUMENT;
    if (const scalide_array *plain = find_exactly(file, name, "")) {
        *array = *plain;
        return SCALIDE_OK;
    }
    if (find_skipped(file, name, "")) return SCALIDE_UNSUPPORTED;
    for (const auto &suffixes : {part_suffixes[1], part_suffixes[0]}) { // the first row is ambiguous if a tensor is named `x.data`
        const scalide_array *data = find_exactly(file, name, suffixes[0]), *scale = find_exactly(file, name, suffixes[1]);
        if (!data || !scale || scale->dtype != SCALIDE_F32 || scale->rank != 0) continue;
        *array = *data;
        array->scale = static_cast<float *>(scale->data);
        return SCALIDE_OK;
    }
    return find_skipped(file, name) ? SCALIDE_UNSUPPORTED : SCALIDE_INVALID_ARGUMENT;
}

void scalide_safetensors_explain(const scalide_safetensors *file, const char *name, char *message, size_t message_size) {
    Text text(message, message_size, Text::Use::message);
    scalide_array array;
    if (!file || !name || scalide_safetensors_find(file, name, &array) == SCALIDE_OK) return;
    if (const scalide_skipped_tensor *skipped = find_skipped(file, name)) {
        explain_skipped(text, *skipped);
    } else {
        (text << "tensor '").name(name) << "': the file has no tensor of this name. Check the name.";
    }
}

size_t scalide_safetensors_skipped_count(const scalide_safetensors *file) { return file ? file->skipped_count : 0; }

const scalide_skipped_tensor *scalide_safetensors_skipped(const scalide_safetensors *file, size_t index) {
    return index < scalide_safetensors_skipped_count(file) ? &file->skipped[index] : nullptr;
}

const char *scalide_safetensors_metadata(const scalide_safetensors *file, const char *key) {
    if (!file || !key) return nullptr;
    for (uint64_t i = 0; i < file->metadata_count; ++i) {
        if (std::strcmp(file->metadata[i].key, key) == 0) return file->metadata[i].value;
    }
    return nullptr;
}

size_t scalide_safetensors_metadata_count(const scalide_safetensors *file) { return file ? file->metadata_count : 0; }

const scalide_metadata *scalide_safetensors_metadata_entry(const scalide_safetensors *file, size_t index) {
    return index < scalide_safetensors_metadata_count(file) ? &file->metadata[index] : nullptr;
}

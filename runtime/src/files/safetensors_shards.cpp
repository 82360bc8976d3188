#include "files/safetensors_shards.h"
#include "base/memory.h"
#include "files/folder.h"
#include "files/new_file.h"
#include "files/safetensors_content.h"

namespace scalide {

namespace {

constexpr char name_begin[] = "/model-", name_middle[] = "-of-", name_end[] = ".safetensors";
constexpr char index_name[] = "/model.safetensors.index.json";
constexpr int digits_of_number = 5; // as Hugging Face; more if there are more files

/// The text of a number with leading zeros.
struct Digits {
    char text[24];
    explicit Digits(uint64_t number) {
        Text measure(nullptr, 0);
        measure << number;
        Text out(text, sizeof(text));
        for (size_t i = measure.size(); i < digits_of_number; ++i) out << '0';
        out << number;
    }
};

OwnedText shard_path(const char *folder, uint64_t number, uint64_t count) {
    return {folder, name_begin, Digits(number).text, name_middle, Digits(count).text, name_end};
}

/// Returns the end of the shard that begins with this entry. Data and scale of a tensor stay together.
uint64_t end_of_shard(const Writing &writing, uint64_t begin, uint64_t shard_bytes) {
    uint64_t end = begin, bytes = 0;
    while (end < writing.entry_count) {
        const FileEntry &entry = writing.entries[end];
        const bool is_scaled = entry.array && entry.array->scale;
        const uint64_t more = entry.bytes + (is_scaled ? sizeof(float) : 0);
        if (end > begin && (more > shard_bytes || bytes > shard_bytes - more)) break;
        bytes += more;
        end += is_scaled ? 2 : 1;
    }
    return end;
}

void print_index(Text &text, const Writing &writing, uint64_t shard_bytes, uint64_t count) {
    uint64_t total = 0, number = 0;
    for (uint64_t i = 0; i < writing.entry_count; ++i) total += writing.entries[i].bytes;
    text << "{\"metadata\":{\"total_size\":" << total << "},\"weight_map\":{";
    for (uint64_t begin = 0, end; begin < writing.entry_count; begin = end) {
        end = end_of_shard(writing, begin, shard_bytes);
        ++number;
        for (uint64_t i = begin; i < end; ++i) {
            print_name(text << (i > 0 ? ",\"" : "\""), writing.entries[i])
                << "\":\"" << name_begin + 1 << Digits(number).text << name_middle << Digits(count).text << name_end << '"';
        }
    }
    text << "}}\n";
}

bool fail_for_memory(Writing &writing) {
    writing.message.begin() << "out of memory: cannot allocate the index of the files.";
    writing.failure = SCALIDE_OUT_OF_MEMORY;
    return false;
}

bool write_index(Writing &writing, const char *folder, uint64_t shard_bytes, uint64_t count) {
    const OwnedText path({folder, index_name});
    Text measure(nullptr, 0);
    print_index(measure, writing, shard_bytes, count);
    char *memory = path ? static_cast<char *>(allocate(measure.size() + 1)) : nullptr;
    if (!memory) return fail_for_memory(writing);
    Text text(memory, measure.size() + 1);
    print_index(text, writing, shard_bytes, count);
    NewFile file(path.get());
    const bool good = file.write(memory, measure.size()) && file.publish(false);
    release(memory);
    if (!good) writing.failure = file.explain(writing.message);
    return good;
}

bool is_shard_name(const char *name, uint64_t *count) {
    const char *at = name;
    const auto accept = [&](const char *text) {
        const size_t length = std::strlen(text);
        if (std::strncmp(at, text, length) != 0) return false;
        at += length;
        return true;
    };
    const auto number = [&](uint64_t *value) {
        const char *begin = at;
        for (*value = 0; *at >= '0' && *at <= '9' && at - begin < 6; ++at) *value = 10 * *value + static_cast<uint64_t>(*at - '0');
        return at != begin;
    };
    uint64_t place;
    return accept(name_begin + 1) && number(&place) && accept(name_middle) && number(count) && accept(name_end) && *at == 0 && *count > 0;
}

/// Finds the number of shards that the folder should have, from the name of one of them, or 0. If this returns false, errno has the error.
bool count_shards(const char *folder, uint64_t *result) {
    uint64_t count = 0;
    FolderReader reader(folder);
    if (!reader.is_open()) return false;
    for (const char *name = reader.next(); name; name = reader.next()) {
        uint64_t said;
        if (is_shard_name(name, &said)) count = std::max(count, said);
    }
    *result = count;
    errno = reader.error();
    return reader.error() == 0;
}

uint64_t lay_out(scalide_safetensors &result, void *memory) {
    Carver carver(memory);
    take_tables(carver, result, result.skipped_count);
    result.parts = carver.take<scalide_safetensors *>(result.part_count);
    return carver.bytes();
}

/// Returns one content with the tensors of all parts, which it owns then. NULL: out of memory.
scalide_safetensors *join(scalide_safetensors *const *parts, uint64_t count) {
    scalide_safetensors result = {};
    result.part_count = count;
    for (uint64_t i = 0; i < count; ++i) {
        result.tensor_count += parts[i]->tensor_count;
        result.skipped_count += parts[i]->skipped_count;
    }
    result.metadata = parts[0]->metadata;
    result.metadata_count = parts[0]->metadata_count;
    void *memory = allocate(lay_out(result, nullptr));
    if (!memory) return nullptr;
    lay_out(result, memory);
    uint64_t tensor = 0, skipped = 0;
    for (uint64_t i = 0; i < count; ++i) {
        std::copy_n(parts[i]->tensors, parts[i]->tensor_count, result.tensors + tensor);
        std::copy_n(parts[i]->skipped, parts[i]->skipped_count, result.skipped + skipped);
        tensor += parts[i]->tensor_count;
        skipped += parts[i]->skipped_count;
        result.parts[i] = parts[i];
    }
    sort_names(result.by_name, result.tensor_count, [&](uint64_t i) { return result.tensors[i].name; });
    auto *made = static_cast<scalide_safetensors *>(memory);
    *made = result;
    return made;
}

bool has_same_names(const FileMessage &message, const scalide_safetensors &file) {
    for (uint64_t i = 1; i < file.tensor_count; ++i) {
        const char *name = file.tensors[file.by_name[i]].name;
        if (std::strcmp(name, file.tensors[file.by_name[i - 1]].name) != 0) continue;
        (message.begin() << "tensor '").name(name) << "': two files of the folder have this tensor. Save the checkpoint again.";
        return true;
    }
    return false;
}

/// Reads the shards into `parts`, and counts those that are read.
scalide_status read_parts(const FileMessage &message, scalide_safetensors **parts, uint64_t count, uint64_t *read) {
    for (*read = 0; *read < count; ++*read) {
        const OwnedText path = shard_path(message.path, *read + 1, count);
        if (!path) {
            message.begin() << "out of memory: cannot allocate the name of a file.";
            return SCALIDE_OUT_OF_MEMORY;
        }
        const scalide_status status = scalide_safetensors_read(path.get(), parts + *read, message.memory, message.size);
        if (status != SCALIDE_OK) return status;
    }
    return SCALIDE_OK;
}

} // namespace

bool write_shards(Writing &writing, const char *folder, uint64_t shard_bytes) {
    uint64_t count = 0, number = 0;
    for (uint64_t at = 0; at < writing.entry_count || count == 0; ++count) at = end_of_shard(writing, at, shard_bytes);
    for (uint64_t begin = 0, end; begin < writing.entry_count || number == 0; begin = end) {
        end = end_of_shard(writing, begin, shard_bytes);
        const OwnedText path = shard_path(folder, ++number, count);
        if (!path) return fail_for_memory(writing);
        if (!write_file(writing, path.get(), begin, end, false)) return false;
    }
    return write_index(writing, folder, shard_bytes, count);
}

int has_shards(const char *folder) {
    uint64_t count = 0;
    return count_shards(folder, &count) ? count > 0 : -1;
}

scalide_status read_shards(const FileMessage &message, scalide_safetensors **file) {
    *file = nullptr;
    uint64_t count = 0;
    if (!count_shards(message.path, &count)) {
        const int error = errno;
        Text text = message.begin() << "cannot read this folder: ";
        print_system_error(text, error) << "Check the path.";
        return SCALIDE_FILE_ERROR;
    }
    if (count == 0) {
        message.begin() << "cannot read this folder: it has no files model-00001-of-00002.safetensors. Check the path.";
        return SCALIDE_FILE_ERROR;
    }
    auto **parts = static_cast<scalide_safetensors **>(allocate(count * sizeof(scalide_safetensors *)));
    uint64_t read = 0;
    scalide_status status = SCALIDE_OUT_OF_MEMORY;
    if (parts) status = read_parts(message, parts, count, &read);
    if (status == SCALIDE_OK) *file = join(parts, count);
    if (!*file) {
        for (uint64_t i = 0; i < read; ++i) scalide_safetensors_close(parts[i]);
        if (status == SCALIDE_OK || !parts) {
            message.begin() << "out of memory: cannot allocate the table of tensors.";
            status = SCALIDE_OUT_OF_MEMORY;
        }
    } else if (has_same_names(message, **file)) {
        scalide_safetensors_close(*file);
        *file = nullptr;
        status = SCALIDE_FILE_ERROR;
    }
    release(parts);
    return status;
}

} // namespace scalide

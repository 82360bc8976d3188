#pragma once
#include "files/safetensors_format.h"

namespace scalide {

/// A tensor of the file. A scaled tensor of the caller becomes two entries, with the suffixes of `part_suffixes`.
struct FileEntry {
    const char *name, *suffix;
    const scalide_array *array; ///< the array whose data this is; nullptr for the scale
    const void *data;
    uint64_t bytes;
};

/// The state while a content is written, to one file or to several.
struct Writing {
    FileMessage message;
    const scalide_safetensors_content &content;
    FileEntry *entries = nullptr, **by_name = nullptr;
    uint64_t entry_count = 0;
    scalide_status failure = SCALIDE_INVALID_ARGUMENT;

    Writing(const FileMessage &message, const scalide_safetensors_content &content) : message(message), content(content) {}
    Writing(const Writing &) = delete;
    Writing &operator=(const Writing &) = delete;
    ~Writing();
};

/// Checks the content and makes its entries. If this returns false, the message and `failure` are written.
bool prepare(Writing &writing);
/// Writes the entries [begin, end) as one file, which replaces an old file when it is complete. See NewFile::publish for `flushes_folder`.
bool write_file(Writing &writing, const char *path, uint64_t begin, uint64_t end, bool flushes_folder = true);
/// Writes the name of an entry as the characters of a JSON string.
Text &print_name(Text &text, const FileEntry &entry);

} // namespace scalide

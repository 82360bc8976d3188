#pragma once
#include "base/text.h"
#include "scalide/safetensors.h"
#include <cstdint>

/// Definitions that the safetensors reader and writer share. A file has 8 bytes of header length (little endian), a JSON header, and the
/// data.
namespace scalide {

constexpr uint64_t header_length_bytes = 8;
constexpr uint64_t max_header_bytes = 100'000'000; // the limit of the reference implementation
constexpr char metadata_key[] = "__metadata__";
constexpr const char *part_suffixes[2][2] = SCALIDE_PART_SUFFIXES;
constexpr char version_key[] = "scalide.version", version[] = "1";

/// Returns "F8_E4M3" for SCALIDE_F8_E4M3FN, ...
const char *safetensors_name(int32_t dtype);
/// Returns the dtype with this name, or -1.
int32_t safetensors_dtype(const char *name);

/// The destination of a message about a file.
struct FileMessage {
    const char *path;
    char *memory;
    size_t size;
    Text begin() const { return Text(memory, size, Text::Use::message) << path << ": "; }
};

/// Writes that a pointer of the caller must not be NULL.
scalide_status refuse_null(char *message, size_t message_size, const char *pointer);

/// Prints a text such as `No such file or directory. ` for an errno.
Text &print_system_error(Text &text, int error);

} // namespace scalide

#pragma once
#include "text.h"
#include <cstdint>

/// What the safetensors reader and writer share: 8 bytes of header length (little endian), a JSON header, then the data.
namespace scalide {

constexpr uint64_t header_length_bytes = 8;
constexpr uint64_t max_header_bytes = 100'000'000; // the reference implementation's limit
constexpr char metadata_key[] = "__metadata__";
/// What the names of the two parts of a scaled tensor end with; those of the second row where another tensor has a name of the first.
constexpr const char *part_suffixes[2][2] = {{".data", ".scale"}, {"!data", "!scale"}};
constexpr char version_key[] = "scalide.version", version[] = "1";

/// "F8_E4M3" for SCALIDE_F8_E4M3FN, ...
const char *safetensors_name(int32_t dtype);
/// The dtype of a name, or -1.
int32_t safetensors_dtype(const char *name);

/// Where a call says what is wrong with a file.
struct FileMessage {
    const char *path;
    char *memory;
    size_t size;
    Text begin() const { return Text(memory, size, Text::Use::message) << path << ": "; }
};

/// `No such file or directory. ` for an errno.
Text &print_system_error(Text &text, int error);

} // namespace scalide

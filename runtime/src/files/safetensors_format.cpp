#include "files/safetensors_format.h"
#include <cstring>

namespace scalide {

namespace {

#define SCALIDE_NAME(id, name, text, number, kind, bits, safetensors, ...) safetensors,
constexpr const char *names[] = {SCALIDE_DTYPES(SCALIDE_NAME)};
#undef SCALIDE_NAME

} // namespace

const char *safetensors_name(int32_t dtype) { return names[dtype]; }

int32_t safetensors_dtype(const char *name) {
    for (int32_t dtype = 0; dtype < SCALIDE_DTYPE_COUNT; ++dtype) {
        if (std::strcmp(names[dtype], name) == 0) return dtype;
    }
    return -1;
}

scalide_status refuse_null(char *message, size_t message_size, const char *pointer) {
    Text(message, message_size) << pointer << " must not be NULL.";
    return SCALIDE_INVALID_ARGUMENT;
}

Text &print_system_error(Text &text, int error) {
    char memory[128];
    return text << strerror_r(error, memory, sizeof(memory)) << ". ";
}

} // namespace scalide

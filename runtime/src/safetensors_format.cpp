#include "safetensors_format.h"
#include "scalide/scalide.h"
#include <cstring>

namespace scalide {

namespace {

// In the order of scalide_dtype.
constexpr const char *names[SCALIDE_DTYPE_COUNT] = {
    "F32", "F16",  "BF16", "F8_E4M3", "F8_E5M2", "F8_E4M3FNUZ", "F8_E5M2FNUZ", "F8_E8M0",
    "I32", "BOOL", "F64",  "I8",      "U8",      "I16",         "U16",         "U32",
};

} // namespace

const char *safetensors_name(int32_t dtype) { return names[dtype]; }

int32_t safetensors_dtype(const char *name) {
    for (int32_t dtype = 0; dtype < SCALIDE_DTYPE_COUNT; ++dtype) {
        if (std::strcmp(names[dtype], name) == 0) return dtype;
    }
    return -1;
}

Text &print_system_error(Text &text, int error) {
    char memory[128];
    return text << "got '" << strerror_r(error, memory, sizeof(memory)) << "'. ";
}

} // namespace scalide

#include "scalide/safetensors.h"
#include "fuzz/memory_file.h"
#include "fuzz/target.h"
#include <cstdlib>
#include <cstring>

namespace {

// What was read can be asked for by name, and lies in memory.
void use(const scalide_safetensors *content) {
    for (size_t i = 0; i < scalide_safetensors_count(content); ++i) {
        const scalide_tensor *tensor = scalide_safetensors_tensor(content, i);
        uint64_t bytes = scalide_dtype_size(tensor->array.dtype);
        for (int32_t axis = 0; axis < tensor->array.rank; ++axis) bytes *= static_cast<uint64_t>(tensor->array.extent[axis]);
        if (bytes > 0) static_cast<void>(static_cast<const volatile char *>(tensor->array.data)[bytes - 1]);
        scalide_array array;
        if (scalide_safetensors_find(content, tensor->name, &array) != SCALIDE_OK) std::abort();
    }
    for (size_t i = 0; i < scalide_safetensors_skipped_count(content); ++i) {
        char message[256] = "";
        scalide_safetensors_explain(content, scalide_safetensors_skipped(content, i)->name, message, sizeof message);
        if (!message[0]) std::abort();
    }
    scalide_array none;
    static_cast<void>(scalide_safetensors_find(content, "x", &none));
    static_cast<void>(scalide_safetensors_metadata(content, "format"));
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const scalide::MemoryFile file(data, size);
    char message[256] = "";
    scalide_safetensors *content = nullptr;
    if (scalide_safetensors_read(file.path().c_str(), &content, message, sizeof message) == SCALIDE_OK) {
        use(content);
    } else if (content || !message[0]) {
        std::abort();
    }
    scalide_safetensors_close(content);
    return 0;
}

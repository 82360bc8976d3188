#include "scalide/safetensors.h"
#include "fuzz/target.h"
#include <cstdio>
#include <unistd.h>

// The reader takes a path: the bytes go through a file of this process.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const std::string path = "fuzz_" + std::to_string(getpid()) + ".safetensors";
    std::FILE *file = std::fopen(path.c_str(), "wb");
    if (!file) return 0;
    std::fwrite(data, 1, size, file);
    std::fclose(file);
    char message[256];
    scalide_safetensors *content = nullptr;
    if (scalide_safetensors_read(path.c_str(), &content, message, sizeof message) == SCALIDE_OK) scalide_safetensors_close(content);
    std::remove(path.c_str());
    return 0;
}

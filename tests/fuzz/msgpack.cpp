#include "scalide/msgpack.h"
#include "fuzz/memory_file.h"
#include "fuzz/target.h"
#include <cstdio>
#include <cstdlib>
#include <unistd.h>
#include <vector>

namespace {

// What was read lies in memory, and can be written and read again.
void use(const scalide_msgpack *content) {
    std::vector<scalide_leaf> leaves;
    for (size_t i = 0; i < scalide_msgpack_count(content); ++i) {
        const scalide_leaf &leaf = *scalide_msgpack_leaf(content, i);
        if (leaf.bytes > 0) static_cast<void>(static_cast<const volatile char *>(leaf.data)[leaf.bytes - 1]);
        leaves.push_back(leaf);
    }
    char path[64];
    std::snprintf(path, sizeof(path), "/tmp/scalide-fuzz-%d", static_cast<int>(getpid()));
    char message[300] = "";
    scalide_msgpack *again = nullptr;
    if (scalide_msgpack_write(path, leaves.data(), leaves.size(), '/', 0, message, sizeof message) != SCALIDE_OK ||
        scalide_msgpack_read(path, '/', &again, message, sizeof message) != SCALIDE_OK || scalide_msgpack_count(again) != leaves.size())
        std::abort();
    scalide_msgpack_close(again);
    unlink(path);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const scalide::MemoryFile file(data, size);
    char message[256] = "";
    scalide_msgpack *content = nullptr;
    if (scalide_msgpack_read(file.path().c_str(), '/', &content, message, sizeof message) == SCALIDE_OK) {
        use(content);
    } else if (content || !message[0]) {
        std::abort();
    }
    scalide_msgpack_close(content);
    return 0;
}

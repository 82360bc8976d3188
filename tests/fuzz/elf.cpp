#include "files/elf_file.h"
#include "fuzz/memory_file.h"
#include "fuzz/target.h"

// What scalide_load asks of a file before it goes to the system's loader.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    using namespace scalide;
    const MemoryFile file(data, size);
    char reason[64] = "";
    Text why(reason, sizeof(reason));
    if (!is_loadable(file.path().c_str(), why) && why.size() == 0) std::abort();
    return 0;
}

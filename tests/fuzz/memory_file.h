#pragma once
#include <cstdlib>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

namespace scalide {

/// Makes bytes available as a file with a path, for code that reads files.
class MemoryFile {
public:
    MemoryFile(const void *data, size_t size) : descriptor_(memfd_create("fuzz", MFD_CLOEXEC)) {
        if (write(descriptor_, data, size) != static_cast<ssize_t>(size)) std::abort();
    }
    MemoryFile(const MemoryFile &) = delete;
    MemoryFile &operator=(const MemoryFile &) = delete;
    ~MemoryFile() { close(descriptor_); }

    std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

private:
    int descriptor_;
};

} // namespace scalide

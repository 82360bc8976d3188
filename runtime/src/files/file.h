#pragma once
#include "files/safetensors_format.h"
#include <cerrno>
#include <cstdint>
#include <utility>

namespace scalide {

constexpr int not_a_file = ESPIPE; ///< value of errno

/// An open file descriptor, closed at the end of the scope.
class File {
public:
    File(const char *path, int flags);
    /// Takes ownership of a descriptor. -1 is a closed file.
    explicit File(int descriptor = -1) : descriptor_(descriptor) {}
    ~File() { close(); }
    File(File &&other) noexcept : descriptor_(other.descriptor_) { other.descriptor_ = -1; }
    File &operator=(File &&other) noexcept {
        std::swap(descriptor_, other.descriptor_);
        return *this;
    }

    int descriptor() const { return descriptor_; }

    bool is_open() const { return descriptor_ >= 0; }
    /// If this returns false, errno has the error. Reading past the end gives EIO. A pipe or a device, which has no size, gives
    /// `not_a_file`.
    bool size(uint64_t *bytes) const;
    bool read_at(uint64_t offset, void *memory, uint64_t bytes) const;
    /// Maps the file as private, writable memory. `bytes` is at least 1. Returns NULL if it fails. Release it with `unmap`.
    void *map(uint64_t bytes) const;
    static void unmap(void *memory, uint64_t bytes);
    bool write(const void *memory, uint64_t bytes) const { return append(memory, bytes) == bytes; }
    /// Returns the number of bytes that were written. If it is less than `bytes`, errno has the error.
    uint64_t append(const void *memory, uint64_t bytes) const;
    bool truncate(uint64_t bytes) const;
    /// Returns false, and sets errno to EWOULDBLOCK, if another open file has the lock. A file system without locks gives true. The lock
    /// ends when the file is closed.
    bool lock() const;
    bool flush() const;
    bool close();

private:
    int descriptor_;
};

/// Returns false if `path` is something other than a regular file. Renaming a file onto a device would remove the device.
bool is_replaceable(const char *path);

} // namespace scalide

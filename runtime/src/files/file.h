#pragma once
#include "files/safetensors_format.h"
#include <cerrno>
#include <cstdint>
#include <utility>

namespace scalide {

constexpr int not_a_file = ESPIPE; ///< in errno

/// An open file descriptor, closed at the end of the scope.
class File {
public:
    File(const char *path, int flags);
    /// Takes over a descriptor; -1 is a closed file.
    explicit File(int descriptor = -1) : descriptor_(descriptor) {}
    ~File() { close(); }
    File(File &&other) noexcept : descriptor_(other.descriptor_) { other.descriptor_ = -1; }
    File &operator=(File &&other) noexcept {
        std::swap(descriptor_, other.descriptor_);
        return *this;
    }

    int descriptor() const { return descriptor_; }

    bool is_open() const { return descriptor_ >= 0; }
    /// False: the system's error stands in errno; reading behind the end is EIO. What has no size, a pipe or a device, is `not_a_file`.
    bool size(uint64_t *bytes) const;
    bool read_at(uint64_t offset, void *memory, uint64_t bytes) const;
    bool write(const void *memory, uint64_t bytes) const;
    bool flush() const;
    bool close();

private:
    int descriptor_;
};

/// True unless something stands at `path` that is no regular file: to rename onto a device would remove it.
bool is_replaceable(const char *path);

} // namespace scalide

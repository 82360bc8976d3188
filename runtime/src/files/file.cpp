#include "files/file.h"
#include <cerrno>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace scalide {

namespace {

/// Repeats the call as long as a signal interrupts it.
template<typename Call>
auto uninterrupted(const Call &call) {
    auto result = call();
    while (result < 0 && errno == EINTR) result = call();
    return result;
}

} // namespace

// Without O_NONBLOCK, opening a pipe would wait for a writer. The flag has no effect on regular files.
File::File(const char *path, int flags) : descriptor_(uninterrupted([&] { return ::open(path, flags | O_CLOEXEC | O_NONBLOCK, 0666); })) {}

bool File::size(uint64_t *bytes) const {
    struct stat facts;
    if (fstat(descriptor_, &facts) != 0) return false;
    if (!S_ISREG(facts.st_mode)) {
        errno = S_ISDIR(facts.st_mode) ? EISDIR : not_a_file;
        return false;
    }
    *bytes = static_cast<uint64_t>(facts.st_size);
    return true;
}

bool is_replaceable(const char *path) {
    struct stat facts;
    return stat(path, &facts) != 0 || S_ISREG(facts.st_mode);
}

bool File::read_at(uint64_t offset, void *memory, uint64_t bytes) const {
    auto *to = static_cast<char *>(memory);
    while (bytes > 0) {
        const ssize_t got = uninterrupted([&] { return pread(descriptor_, to, bytes, static_cast<off_t>(offset)); });
        if (got == 0) errno = EIO;
        if (got <= 0) return false;
        to += got;
        offset += static_cast<uint64_t>(got);
        bytes -= static_cast<uint64_t>(got);
    }
    return true;
}

void *File::map(uint64_t bytes) const {
    void *memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, descriptor_, 0);
    return memory == MAP_FAILED ? nullptr : memory;
}

void File::unmap(void *memory, uint64_t bytes) { munmap(memory, bytes); }

uint64_t File::append(const void *memory, uint64_t bytes) const {
    const auto *from = static_cast<const char *>(memory);
    uint64_t written = 0;
    while (written < bytes) {
        const ssize_t put = uninterrupted([&] { return ::write(descriptor_, from + written, bytes - written); });
        if (put < 0) break;
        written += static_cast<uint64_t>(put);
    }
    return written;
}

bool File::truncate(uint64_t bytes) const {
    return uninterrupted([&] { return ftruncate(descriptor_, static_cast<off_t>(bytes)); }) == 0;
}

bool File::lock() const {
    return uninterrupted([&] { return flock(descriptor_, LOCK_EX | LOCK_NB); }) == 0 || errno != EWOULDBLOCK;
}

bool File::flush() const {
    return uninterrupted([&] { return fsync(descriptor_); }) == 0;
}

bool File::close() {
    if (descriptor_ < 0) return true;
    const int descriptor = descriptor_;
    descriptor_ = -1;
    return ::close(descriptor) == 0;
}

} // namespace scalide

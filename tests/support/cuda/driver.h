#pragma once
#include <cstddef>
#include <string>

namespace scalide {

/// CUDA's driver and a stream of device 0 for code that calls cuBLASLt or the driver bare: the device's primary context is current in the
/// thread that made this, as long as this lives.
class Driver {
public:
    /// Throws std::runtime_error where there is no driver or no card.
    Driver();
    ~Driver();
    Driver(const Driver &) = delete;
    Driver &operator=(const Driver &) = delete;

    void *stream() const { return stream_; }
    /// Appends a copy inside of device memory to the stream. Throws std::runtime_error where it fails, as does `wait`.
    void copy(void *to, const void *from, size_t bytes) const;
    /// For all that the stream has.
    void wait() const;

private:
    template<typename... Arguments>
    void call(const char *name, Arguments... arguments) const;

    void *library_;
    void *stream_ = nullptr;
};

} // namespace scalide

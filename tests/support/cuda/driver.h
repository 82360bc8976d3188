#pragma once
#include <cstddef>
#include <string>
#include <vector>

namespace scalide {

/// CUDA's driver and a stream of device 0 for code that calls cuBLASLt or the driver bare: the device's primary context is current in the
/// thread that made this, as long as this lives.
class Driver {
public:
    /// Throws std::runtime_error if there is no driver or no GPU.
    Driver();
    ~Driver();
    Driver(const Driver &) = delete;
    Driver &operator=(const Driver &) = delete;

    void *stream() const { return stream_; }
    /// Appends a copy within device memory to the stream. Like `wait`, it throws std::runtime_error on failure.
    void copy(void *to, const void *from, size_t bytes) const;
    /// Waits for all work in the stream.
    void wait() const;

    /// Loads a kernel from a PTX text. It is valid as long as this object. Throws if the driver cannot compile it.
    void *load(const std::string &ptx, const std::string &name);
    struct Blocks {
        unsigned x = 1, y = 1;
    };
    /// Appends a launch to the stream. `arguments` point to the values of the kernel's parameters.
    void launch(void *kernel, Blocks blocks, unsigned threads, unsigned shared_bytes, void **arguments) const;

private:
    template<typename... Arguments>
    void call(const char *name, Arguments... arguments) const;

    void *library_;
    void *stream_ = nullptr;
    std::vector<void *> modules_;
};

} // namespace scalide

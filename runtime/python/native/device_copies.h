#pragma once
#include "loaded_program.h"

namespace scalide::python {

/// Device memory for the arrays of the caller. Without a device there are no copies.
class DeviceCopies {
public:
    DeviceCopies() = default;
    /// Allocates device memory of the same sizes for the arrays that have memory. Throws Failure.
    DeviceCopies(scalide_context *context, const std::vector<scalide_array> &arrays);
    DeviceCopies(DeviceCopies &&) = default;
    DeviceCopies &operator=(DeviceCopies &&) = default;

    /// Returns the arrays that the program uses. They are valid until the next call, and as long as the arrays of the caller.
    const std::vector<scalide_array> &seen(const std::vector<scalide_array> &arrays);
    void copy_in(size_t argument, const scalide_array &array) const;
    void copy_out(size_t argument, const scalide_array &array) const;

private:
    struct Release {
        scalide_context *context;
        void operator()(void *memory) const { scalide_release(context, memory); }
    };
    using Block = std::unique_ptr<void, Release>;

    Block allocate(size_t bytes) const;
    void check(scalide_status status) const;

    scalide_context *context_ = nullptr;
    std::vector<Block> data_, scales_;
    std::vector<scalide_array> seen_;
};

} // namespace scalide::python

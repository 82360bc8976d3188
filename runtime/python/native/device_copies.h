#pragma once
#include "loaded_program.h"

namespace scalide::python {

/// What stands on a device for the caller's arrays: memory of the same sizes. Without a device there are no copies.
class DeviceCopies {
public:
    DeviceCopies() = default;
    /// Throws Failure.
    DeviceCopies(scalide_context *context, const std::vector<scalide_array> &arrays);
    DeviceCopies(DeviceCopies &&) = default;
    DeviceCopies &operator=(DeviceCopies &&) = default;

    /// The arrays as the program shall see them; valid until the next call, as long as the arrays are.
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

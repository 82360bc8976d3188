#pragma once
#include "scalide/scalide.h"
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <vector>

namespace scalide::test {

/// The context, or the runtime's message if there is none.
struct Context {
    scalide_context *handle = nullptr;
    scalide_status status;
    std::string message;

    explicit Context(int32_t device, void *stream = nullptr, int32_t index = 0);
    Context(const Context &) = delete;
    Context &operator=(const Context &) = delete;
    ~Context() { scalide_context_destroy(handle); }
};

/// The arrays of elementwise.scl with batch size `b`, in the memory of a context.
class Elementwise {
public:
    Elementwise(scalide_context *context, int64_t b, unsigned seed = 1);
    ~Elementwise();
    Elementwise(const Elementwise &) = delete;
    Elementwise &operator=(const Elementwise &) = delete;

    /// Status of the first failed call to the context's memory.
    scalide_status status = SCALIDE_OK;
    std::vector<scalide_array> arrays;

    scalide_status bind(const scalide_program *program, scalide_binding **binding) const;
    /// All bytes of the outputs of a run.
    std::vector<unsigned char> results();
    size_t bytes(size_t argument) const;

private:
    void *place(const void *content, size_t bytes);

    scalide_context *context_;
    std::vector<void *> taken_;
};

/// Returns the results of a program after `runs` runs on a device of this kind.
std::vector<unsigned char> run(int32_t device, const scalide_program *program, int64_t b, int runs);

} // namespace scalide::test

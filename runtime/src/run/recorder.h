#pragma once
#include "bind/bound_matmul.h"

namespace scalide {

/// Writes down what the steps of a binding launch: the host code of their kernels runs at bind, and when arguments change. A first pass
/// counts, the next ones write. Between the two the binding's memory on the device is allocated, so the first pass sees no addresses.
class Recorder {
public:
    explicit Recorder(scalide_binding &binding) : binding_(binding), context_(*binding.context) {}

    /// Loads the modules, counts launches, arguments and temporary memory, and allocates the tables.
    scalide_status measure();
    /// Fills in the tables, whose addresses are known.
    scalide_status record();

    // What the host code asks for: 0, or not.
    int launch(const HalideLaunch &launch);
    int allocate(HalideBuffer &buffer);

private:
    scalide_status run_steps();
    void run_step(int32_t step, void **arguments);
    void write_matmul(const BoundMatmul &matmul);
    void call(int32_t step, void **arguments);
    bool is_within_limits(const HalideLaunch &launch);
    Module *find_module(const char *source);
    bool write(const HalideLaunch &launch, Module *module, int32_t argument_count);
    void fail(scalide_status status); ///< in the device's words
    bool has_failed() const { return context_.run_status.load(std::memory_order_relaxed) != SCALIDE_OK; }

    scalide_binding &binding_;
    scalide_context &context_;
    bool is_measuring_ = false;
    int32_t launches_ = 0, arguments_ = 0;
    uint64_t scratch_ = 0, most_scratch_ = 0; ///< of the step, of all
};

/// Gives back graph, launches and the modules that no binding of the context uses any more.
void release_launches(scalide_binding &binding);

} // namespace scalide

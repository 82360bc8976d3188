#pragma once
#include "bind/bound_matmul.h"

namespace scalide {

/// Records what the steps of a binding launch. The host code of their kernels runs at bind and whenever arguments change. The first pass
/// counts the launches, and later passes record them. The binding's device memory is allocated after the first pass, so the first pass sees
/// no addresses.
class Recorder {
public:
    explicit Recorder(scalide_binding &binding) : binding_(binding), context_(*binding.context) {}

    /// Loads the modules, counts launches, arguments and temporary memory, and allocates the tables.
    scalide_status measure();
    /// Fills in the tables. The addresses must be known.
    scalide_status record();
    /// Fills in the launches of one step again, with the addresses of the step of a loop. A failure is a failure of the run.
    void record_again(int32_t step);

    // The services for the host code. They return 0 or an error.
    int launch(const HalideLaunch &launch);
    int allocate(HalideBuffer &buffer);

private:
    scalide_status run_steps();
    void run_step(int32_t step, void **arguments);
    void write_matmul(const BoundMatmul &matmul);
    /// Launches a kernel of the runtime itself with at least `threads` threads, in blocks of `in_block`.
    void launch_own(const char *source, const char *name, uint32_t threads, uint32_t in_block, const LaunchArgument *own, int32_t count);
    void write_call(const BoundMatmul &matmul);
    void convert(const MatmulConversion &conversion);
    void clear(void *number);
    void call(int32_t step, void **arguments);
    void copy(const scalide_array &from, const scalide_array &to);
    bool is_within_limits(const HalideLaunch &launch);
    Module *find_module(const char *source);
    bool write(const HalideLaunch &launch, Module *module, int32_t argument_count);
    void fail(scalide_status status); ///< fails with the device's message
    bool has_failed() const { return context_.run_status.load(std::memory_order_relaxed) != SCALIDE_OK; }

    scalide_binding &binding_;
    scalide_context &context_;
    bool is_measuring_ = false;
    int32_t launches_ = 0, arguments_ = 0;
    uint64_t scratch_ = 0, most_scratch_ = 0; ///< of the current step; maximum over all steps
};

/// Frees the graph, the launches and the modules that no binding of the context uses any more.
void release_launches(scalide_binding &binding);

} // namespace scalide

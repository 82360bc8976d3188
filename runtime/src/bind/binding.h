#pragma once
#include "context.h"
#include "halide_abi.h"
#include "run/memory.h"
#include "scalide/plan.h"
#include <atomic>

namespace scalide {

/// A buffer of the plan with its address.
struct BoundBuffer {
    void *memory;
    int64_t elements;
    uint64_t size_value; ///< SCALIDE_STORAGE_SIZE: the value itself, in the buffer's dtype
};

struct BoundMatmul;

/// The launches of a run on a device. Empty on the CPU.
struct Launches {
    void *tables; ///< one block, which contains all tables below
    Launch *rows;
    int32_t *ends; ///< by step: the number of launches up to its end
    LaunchArgument *arguments;
    void **values;
    int32_t count, argument_count; ///< capacity in launches and arguments
    int32_t used;                  ///< launches of a run
    BoundMatmul *matmuls;          ///< in the order of the steps that compute a matmul; a separate block
    uint64_t scratch_bytes;        ///< for data that a kernel keeps between two launches: the maximum over all steps
    char *scratch;
    void *graph; ///< NULL before scalide_capture
};

/// What a run reports about its steps: intermediate values to a callback, or the time of each step.
struct Trace {
    scalide_trace call; ///< NULL: no callback
    void *user;
    scalide_step_profile *profile = nullptr; ///< by step; gets the seconds of a run that is faster than all before

    bool is_on() const { return call || profile; }

    void show(const scalide_buffer &buffer, const scalide_array &array) const {
        const scalide_traced traced = {buffer.name, buffer.tensor ? buffer.tensor : buffer.name, buffer.part};
        call(user, &traced, &array);
    }
};

} // namespace scalide

/// All tables are in one block after the structure. The arena is a second block.
struct scalide_binding {
    scalide_context *context;
    const scalide_program *program;
    void *user_context;
    scalide_array *arrays;
    int32_t *symbols;
    scalide::BoundBuffer *buffers;
    uint64_t *scalars;
    scalide::HalideBuffer *descriptors; ///< one per operand that is a buffer, in order of steps and operands
    scalide::HalideDimension *dimensions;
    void **arguments; ///< the argv of step 0, of step 1, ...
    void *arena;      ///< on a device, it also contains the scalars, sizes and constants
    uint64_t arena_bytes;
    scalide::Launches launches;
    scalide_constants *constants;                    ///< NULL: the program has none
    std::atomic<scalide_constants *> next_constants; ///< of scalide_set_constants; the next run takes them
    int32_t current_step;
    scalide_status status;
};

namespace scalide {

/// Returns the element type of a kernel's view of this dtype, which is its storage type.
HalideType halide_type_of(int32_t dtype);
/// Allocates a binding without arrays and addresses. Returns nullptr if memory is lacking.
scalide_binding *allocate_binding(scalide_context *context, const scalide_program &program);
/// Computes the sizes, arena, scratch memory and kernel arguments of a binding whose arrays and symbols are known.
scalide_status prepare(scalide_binding &binding);
/// Writes the addresses of buffers into the kernels' views, and the addresses of operands into the kernels' argument lists. On a device,
/// also writes them into the launches, which is the only step that can fail.
scalide_status point(scalide_binding &binding);

/// Like point(). Records the graph of a binding again, too. After a failure, the binding cannot run any more.
scalide_status replace_addresses(scalide_binding &binding);

scalide_status run_on_device(scalide_binding &binding, const Trace &trace);
/// Captures the launches as a graph and replaces an existing graph. After a failure there is no graph.
scalide_status capture(scalide_binding &binding);

} // namespace scalide

#pragma once
#include "context.h"
#include "halide_abi.h"
#include "run/memory.h"
#include "scalide/plan.h"

namespace scalide {

/// A buffer of the plan with its address.
struct BoundBuffer {
    void *memory;
    int64_t elements;
    uint64_t size_value; ///< SCALIDE_STORAGE_SIZE: the value itself, in the buffer's dtype
};

struct BoundMatmul;

/// What a run on a device does. Empty on the CPU.
struct Launches {
    void *tables; ///< one block, which holds all below
    Launch *rows;
    int32_t *ends; ///< by step: how many launches there are up to its end
    LaunchArgument *arguments;
    void **values;
    int32_t count, argument_count; ///< rows and arguments that there is room for
    int32_t used;                  ///< rows that a run launches
    BoundMatmul *matmuls;          ///< by product of the plan, in the order of steps; a block of its own
    uint64_t scratch_bytes;        ///< for what a kernel keeps between two launches: the most of all steps
    char *scratch;
    void *graph; ///< NULL before scalide_capture
};

/// The callback that receives intermediate values of a run.
struct Trace {
    scalide_trace call; ///< NULL = nobody
    void *user;

    void show(const scalide_buffer &buffer, const scalide_array &array) const {
        const scalide_traced traced = {buffer.name, buffer.tensor ? buffer.tensor : buffer.name, buffer.part};
        call(user, &traced, &array);
    }
};

} // namespace scalide

/// All tables lie in one block behind the structure; the arena is a second one.
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
    void *arena;      ///< on a device it has the scalars, sizes and constants too
    uint64_t arena_bytes;
    scalide::Launches launches;
    int32_t current_step;
    scalide_status status;
};

namespace scalide {

/// Returns the type of a kernel's view of this dtype, which is the type of its storage words.
HalideType halide_type_of(int32_t dtype);
/// A binding without arrays and addresses; nullptr: out of memory.
scalide_binding *allocate_binding(scalide_context *context, const scalide_program &program);
/// Sizes, arena, scratch memory and the kernels' arguments of a binding whose arrays and symbols are known.
scalide_status prepare(scalide_binding &binding);
/// Writes the addresses of buffers into the kernels' views, and the addresses of operands into the kernels' argument lists. On a device,
/// also writes them into the launches, which is the only step that can fail.
scalide_status point(scalide_binding &binding);

scalide_status run_on_device(scalide_binding &binding, const Trace &trace);
/// Captures the launches as a graph and replaces an existing graph. After a failure there is no graph.
scalide_status capture(scalide_binding &binding);

} // namespace scalide

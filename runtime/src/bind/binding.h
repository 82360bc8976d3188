#pragma once
#include "base/memory.h"
#include "bind/layout.h"
#include "scalide/plan.h"
#include <atomic>

namespace scalide {

struct BoundMatmul;

/// How the kernels of a binding reach the data of an argument.
enum class Access : uint8_t {
    dense,   ///< in place; the array is dense
    strided, ///< in place; the kernels read the strides of the array from their views
    copied,  ///< in a dense copy in the arena. A run copies the array there before the first step, or from there after the last step
};

/// The data of an argument, as bind has chosen. It stays so for all arrays that replace the first one.
struct ArgumentData {
    Access access;
    uint64_t offset; ///< Access::copied: of the copy, after the first one
};

/// The launches of a run on a device. Empty on the CPU.
struct Launches {
    void *tables; ///< one block, which contains all tables below
    Launch *rows;
    int32_t copies_in, copy_arguments; ///< launches before the first step, which copy arrays with strides, and their arguments
    int32_t *ends;                     ///< by step: the number of launches up to its end
    int32_t *argument_ends;
    LaunchArgument *arguments;
    void **values;
    int32_t count, argument_count; ///< capacity in launches and arguments
    int32_t used;                  ///< launches of a run. Copies of arrays with strides follow the last step
    BoundMatmul *matmuls;          ///< in the order of the steps that compute a matmul; a separate block
    uint64_t scratch_bytes;        ///< for data that a kernel keeps between two launches: the maximum over all steps
    char *scratch;
    void *graph;   ///< NULL before scalide_capture
    void *widened; ///< memory for converted operands of matmuls (matmul_forms.h); NULL: no matmul is widened
    uint64_t widened_bytes;
};

/// A slot of the scalar table. It has 16 bytes because cuBLASLt refuses an f8 matmul whose scale begins elsewhere (matmul_rules.cpp).
struct alignas(16) ScalarSlot {
    unsigned char bytes[16];
};

/// A row of a loop in progress.
struct RowState {
    char *array;    ///< the memory of the whole array
    void *own;      ///< the memory of the row's own buffer
    uint64_t bytes; ///< of a row
    bool is_in_place;
};

/// A carried array of a loop in progress.
struct CarryState {
    void *spare, *result; ///< the memory of `before` and of `after` outside of the loop
    void *read, *write;   ///< what the current step reads and writes
    uint64_t bytes;
};

/// The loops of a run in progress.
struct LoopStates {
    RowState *rows;      ///< by BlockPlace::row
    CarryState *carries; ///< by BlockPlace::carry
    int64_t *steps;      ///< by block: the number of the current step, from 0
    int32_t current;     ///< the innermost loop that runs; -1: none
    char words[256];     ///< the text of scalide_non_finite::loops
};

/// What a run reports about its steps: intermediate values to a callback, or the time of each step.
struct Trace {
    scalide_trace call; ///< NULL: no callback
    void *user;
    double *seconds = nullptr;  ///< by step; gets the time of all its calls in the run
    bool shows_carries = false; ///< also after each step of a loop

    bool is_on() const { return call || seconds; }
};

} // namespace scalide

/// All tables are in one block after the structure. The arena is a second block.
struct scalide_binding {
    scalide_context *context;
    const scalide_program *program;
    void *user_context;
    scalide::Layout *layout; ///< other bindings may share it
    scalide_array *arrays;
    scalide::ArgumentData *data; ///< by argument
    int32_t *symbols;            ///< of the layout
    void **memory;               ///< the address of each buffer
    scalide::ScalarSlot *scalars;
    scalide::HalideBuffer *descriptors; ///< one per operand that is a buffer, in order of steps and operands
    scalide::HalideDimension *strided; ///< the dimensions of all views, if a kernel reads strides of an array; a separate block. NULL: none
    void **arguments;                  ///< the argv of step 0, of step 1, ...
    void *arena;                       ///< on a device, it also contains the scalars, sizes and constants
    uint64_t arena_bytes;
    uint64_t copies_offset; ///< of the copies of arguments in the arena
    bool has_copies;        ///< some arguments have Access::copied
    bool has_callers_arena; ///< of scalide_set_arena
    scalide::Launches launches;
    mutable std::atomic<bool> constants_lock;        ///< see ConstantsLock
    scalide_constants *constants;                    ///< NULL: the program has none
    std::atomic<scalide_constants *> next_constants; ///< of scalide_set_constants; the next run takes them
    scalide::LoopStates loops;
    const scalide_program *asked;      ///< of which `program` is the variant or form; the same on all ranks of a group
    void *staging;                     ///< memory of the host for messages between ranks; a separate block. NULL: no collective needs it
    bool has_collectives, is_compared; ///< some steps are collectives; the ranks have compared what they run
    int32_t current_step;              ///< -1: none, of a failure of the whole program
    scalide_status status;
};

namespace scalide {

/// Returns the context of a binding, and NULL without a binding.
inline scalide_context *context_of(const scalide_binding *binding) { return binding ? binding->context : nullptr; }

/// Returns the element type of a kernel's view of this dtype, which is its storage type.
HalideType halide_type_of(int32_t dtype);
/// Allocates a binding without arrays and addresses, with a new layout if `shared` is NULL. It holds the context. Returns nullptr if memory
/// is lacking.
scalide_binding *allocate_binding(scalide_context *context, const scalide_program &program, Layout *shared);
/// Computes the arena, scratch memory and kernel arguments of a binding whose arrays and layout are known.
scalide_status complete(scalide_binding &binding);

/// The alignment that cuBLASLt needs for a workspace.
constexpr uint64_t device_arena_alignment = 256;
/// Allocates memory for the arena of the binding.
scalide_status allocate_arena(scalide_binding &binding, void **arena);
void release_arena(const scalide_binding &binding, void *arena);
/// Makes this memory the arena of the binding. The addresses must be written again.
void use_arena(scalide_binding &binding, void *arena);
/// Writes the addresses of buffers into the kernels' views, and the addresses of operands into the kernels' argument lists. On a device,
/// also writes them into the launches, which is the only step that can fail.
scalide_status point(scalide_binding &binding);

/// Like point(). Records the graph of a binding again, too. After a failure, the binding cannot run any more.
scalide_status replace_addresses(scalide_binding &binding);

/// Runs on the device of the context. Failures are in its run_status.
void run_on_device(scalide_binding &binding, const Trace &trace);
/// Captures the launches as a graph and replaces an existing graph. After a failure there is no graph.
scalide_status capture(scalide_binding &binding);

} // namespace scalide

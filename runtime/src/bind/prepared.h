#pragma once
#include "bind/binding.h"
#include <atomic>

/// What the prepare program of a program computed. One block of memory contains the structure and its tables; `memory` is another one.
struct scalide_constants {
    std::atomic<int32_t> holders; ///< the caller and the bindings
    scalide_allocator allocator;  ///< of the context that prepared them
    scalide_context *context;     ///< of the device that has the memory, which they hold; NULL: the CPU
    const scalide_program *prepare;
    int32_t argument_count, prepared_count;
    scalide_array *arguments; ///< by argument of the program: dtype and extents of a constant, without memory
    scalide_array *prepared;  ///< by output of the prepare program
    void *memory;             ///< of the prepared arrays
    uint64_t bytes;
};

namespace scalide {

/// Checks a program and replaces it by its best variant for this CPU and the context's GPU, if it has one.
scalide_status choose_program(scalide_context *context, const scalide_program **program);

/// Gives the binding `constants`, or new ones that it prepares from the binding's arrays if `constants` is NULL. Afterwards, the arrays of
/// the constants have no memory.
scalide_status take_constants(scalide_binding &binding, scalide_constants *constants);
/// Checks that prepared buffers have the extents that the program expects.
scalide_status check_prepared(const scalide_binding &binding);
/// Returns the constants of the last scalide_set_constants or bind, and holds them. NULL: the program has none. Other threads may run the
/// binding and replace its constants.
scalide_constants *hold_newest_constants(const scalide_binding &binding);
/// At the start of a run: takes the constants of the last scalide_set_constants.
scalide_status take_next_constants(scalide_binding &binding);

} // namespace scalide

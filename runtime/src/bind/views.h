#pragma once
#include "bind/binding.h"
#include "bind/check.h"

/// Arguments whose arrays are not dense.
namespace scalide {

/// Chooses how the kernels of the binding reach the data of each argument. Sets *bytes to the size of the copies in the arena. May return
/// SCALIDE_OUT_OF_MEMORY.
scalide_status choose_access(scalide_binding &binding, uint64_t *bytes);
/// Writes the strides of the arrays into the views of the kernels that read them.
void write_strides(scalide_binding &binding);
/// Checks that the kernels of the binding reach another array of an argument in the way that bind has chosen.
bool check_access(const scalide_binding &binding, const Call &call, int32_t argument);

/// Returns the bytes that a run copies for an argument.
uint64_t copied_bytes(const scalide_binding &binding, int32_t argument);
/// Returns the dense copy of an argument in the arena. It has no address before the arena is known.
scalide_array copy_of(const scalide_binding &binding, int32_t argument);

/// Calls visit(from, to) for what a run copies before its first step.
template<typename Visit>
void for_each_copy_in(const scalide_binding &binding, Visit visit) {
    for (int32_t i = 0; binding.has_copies && i < binding.program->argument_count; ++i)
        if (binding.data[i].access == Access::copied && binding.program->arguments[i].role != SCALIDE_OUTPUT)
            visit(binding.arrays[i], copy_of(binding, i));
}

/// Calls visit(from, to) for what a run copies after its last step.
template<typename Visit>
void for_each_copy_out(const scalide_binding &binding, Visit visit) {
    for (int32_t i = 0; binding.has_copies && i < binding.program->argument_count; ++i)
        if (binding.data[i].access == Access::copied && binding.program->arguments[i].role != SCALIDE_INPUT)
            visit(copy_of(binding, i), binding.arrays[i]);
}

} // namespace scalide

#pragma once
#include "bind/binding.h"
#include "bind/check.h"

/// Steps in which ranks exchange arrays. The message to each rank has a chunk of each array, in order, and each chunk begins at a multiple
/// of 64 bytes.
namespace scalide {

inline bool has_collectives(const scalide_program &program) {
    for (int32_t i = 0; i < program.step_count; ++i)
        if (program.steps[i].collective) return true;
    return false;
}

/// Returns true if a collective reads or writes the buffer, as dense memory.
bool is_used_by_collectives(const scalide_program &program, int32_t buffer);

/// The sizes of an array of a collective, in bytes.
struct MovedBytes {
    uint64_t from, to;
    uint64_t chunk;  ///< what one rank sends to one rank
    uint64_t padded; ///< the chunk in a message
};

MovedBytes bytes_of(const scalide_program &program, const Layout &layout, const scalide_collective &collective, const scalide_moved &moved);
/// Returns the bytes that one rank sends to one rank.
uint64_t message_bytes(const scalide_program &program, const Layout &layout, const scalide_collective &collective);
/// Returns true if the array of the collective is its message: no copies are necessary.
bool is_message(const scalide_program &program, const Layout &layout, const scalide_collective &collective);

/// Checks the numbers of elements of all collectives.
scalide_status check_collectives(scalide_context *context, const scalide_program &program, const Layout &layout);

/// The group of a collective. The context of a binding is in all groups of its program.
inline const Group &group_of(const scalide_binding &binding, int32_t symbol) {
    return *find_group(binding.context->groups, binding.program->symbols[symbol].name);
}

/// Memory of the host for the messages of a collective, and on a device for copies of its arrays.
struct Staging {
    char *send, *receive, *images;
    uint64_t bytes; ///< of all together
};

Staging staging_of(const scalide_binding &binding, const scalide_collective &collective);
/// Allocates the staging memory of the binding, which all of its collectives use.
scalide_status allocate_staging(scalide_binding &binding);

} // namespace scalide

#pragma once
#include "bind/collectives.h"
#include <algorithm>

/// Collectives of a run: steps in which ranks exchange arrays.
namespace scalide {

/// An array of a collective.
struct MovedArray {
    const scalide_moved &buffers;
    MovedBytes bytes;
    char *from, *to; ///< memory of the host
    uint64_t offset; ///< of its chunk in a message
};

/// Calls visit(array) for the arrays of a collective, in order. Ends when `visit` returns false, and returns that.
template<typename Visit>
bool for_each_array(const scalide_binding &binding, const scalide_collective &collective, const Staging &staging, Visit visit) {
    uint64_t offset = 0;
    char *image = staging.images;
    const auto place = [&](int32_t buffer, uint64_t bytes) {
        if (!image) return static_cast<char *>(binding.memory[buffer]);
        char *memory = image;
        image += round_up(bytes, memory_alignment);
        return memory;
    };
    for (int32_t i = 0; i < collective.count; ++i) {
        const scalide_moved &moved = collective.arrays[i];
        const MovedBytes bytes = bytes_of(*binding.program, *binding.layout, collective, moved);
        char *from = place(moved.from, bytes.from), *to = place(moved.to, bytes.to);
        if (!visit(MovedArray{moved, bytes, from, to, offset})) return false;
        offset += bytes.padded;
    }
    return true;
}

/// Exchanges arrays in memory of the host with the other ranks. A function of this header that returns false has recorded a failure of the
/// run.
bool exchange(const scalide_binding &binding, const scalide_collective &collective, const Staging &staging);

/// Runs a collective of a group with one rank. See StepRunner for `Machine`.
template<typename Machine>
bool copy_alone(const scalide_binding &binding, const scalide_collective &collective, Machine &machine) {
    return for_each_array(binding, collective, Staging{}, [&](const MovedArray &array) {
        const uint64_t copied = std::min(array.bytes.from, array.bytes.to);
        return machine.copy(array.to, array.from, copied) &&
               (copied == array.bytes.to || machine.clear(array.to + copied, array.bytes.to - copied));
    });
}

/// Compares what the ranks of the groups run, before the first run of a binding. If a rank differs, all ranks fail, and *differing is their
/// group.
bool compare_ranks(scalide_binding &binding, const Group **differing);

/// Tells the other ranks of all groups but `spared` that this rank has failed, so that they do not wait for it.
void abort_groups(const scalide_binding &binding, const char *why, const Group *spared);

/// Fails the run because of a message of the group's transport. Returns false.
bool fail_transport(scalide_context *context, const Group &group, const char *message);

} // namespace scalide

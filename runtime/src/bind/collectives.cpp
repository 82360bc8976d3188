#include "bind/collectives.h"
#include "base/memory.h"
#include <algorithm>

namespace scalide {

namespace {

int64_t elements_of(const Layout &layout, int32_t buffer) { return layout.buffers[buffer].elements; }

int64_t ranks_of(const Layout &layout, const scalide_collective &collective) { return layout.symbols[collective.group]; }

template<typename Visit>
void for_each_moved(const scalide_program &program, Visit visit) {
    for (int32_t step = 0; step < program.step_count; ++step) {
        const scalide_collective *collective = program.steps[step].collective;
        for (int32_t i = 0; collective && i < collective->count; ++i) visit(step, *collective, collective->arrays[i]);
    }
}

/// An exchange loses no element of `from`, and a collection fills in all of `to`.
bool has_matching_sizes(const Layout &layout, const scalide_collective &collective, const scalide_moved &moved) {
    const int64_t ranks = ranks_of(layout, collective), from = elements_of(layout, moved.from), to = elements_of(layout, moved.to);
    return collective.kind == SCALIDE_EXCHANGE ? to % ranks == 0 && from <= to : to <= ranks * from;
}

} // namespace

bool is_used_by_collectives(const scalide_program &program, int32_t buffer) {
    bool is_used = false;
    for_each_moved(program, [&](int32_t, const scalide_collective &, const scalide_moved &moved) {
        is_used |= moved.from == buffer || moved.to == buffer;
    });
    return is_used;
}

MovedBytes bytes_of(const scalide_program &program, const Layout &layout, const scalide_collective &collective,
                    const scalide_moved &moved) {
    MovedBytes bytes = {bytes_of(program, layout, moved.from), bytes_of(program, layout, moved.to), 0, 0};
    const auto ranks = static_cast<uint64_t>(ranks_of(layout, collective));
    bytes.chunk = collective.kind == SCALIDE_EXCHANGE ? bytes.to / ranks : bytes.from;
    bytes.padded = round_up(bytes.chunk, memory_alignment);
    return bytes;
}

uint64_t message_bytes(const scalide_program &program, const Layout &layout, const scalide_collective &collective) {
    uint64_t bytes = 0;
    for (int32_t i = 0; i < collective.count; ++i) bytes += bytes_of(program, layout, collective, collective.arrays[i]).padded;
    return bytes;
}

bool is_message(const scalide_program &program, const Layout &layout, const scalide_collective &collective) {
    if (collective.count != 1) return false;
    const MovedBytes bytes = bytes_of(program, layout, collective, collective.arrays[0]);
    const uint64_t all = bytes.chunk * static_cast<uint64_t>(ranks_of(layout, collective));
    return bytes.chunk == bytes.padded && all == (collective.kind == SCALIDE_EXCHANGE ? bytes.from : bytes.to);
}

scalide_status check_collectives(scalide_context *context, const scalide_program &program, const Layout &layout) {
    int32_t bad = -1;
    for_each_moved(program, [&](int32_t step, const scalide_collective &collective, const scalide_moved &moved) {
        if (bad < 0 && !has_matching_sizes(layout, collective, moved)) bad = step;
    });
    if (bad < 0) return SCALIDE_OK;
    start_message(context) << program.name << '.' << program.steps[bad].name
                           << ": the chunks of the ranks must make up the whole array. Generate the library again.";
    return SCALIDE_INVALID_PROGRAM;
}

Staging staging_of(const scalide_binding &binding, const scalide_collective &collective) {
    const scalide_program &program = *binding.program;
    const Layout &layout = *binding.layout;
    const auto ranks = static_cast<uint64_t>(ranks_of(layout, collective));
    Staging staging = {nullptr, nullptr, nullptr, 0};
    const auto take = [&](uint64_t bytes) {
        char *memory = binding.staging ? static_cast<char *>(binding.staging) + staging.bytes : nullptr;
        staging.bytes += bytes;
        return memory;
    };
    if (ranks == 1) return staging;
    const uint64_t message = is_message(program, layout, collective) ? 0 : message_bytes(program, layout, collective);
    staging.send = take(collective.kind == SCALIDE_EXCHANGE ? ranks * message : message);
    staging.receive = take(ranks * message);
    if (!binding.context->device) return staging;
    uint64_t images = 0;
    for (int32_t i = 0; i < collective.count; ++i) {
        const MovedBytes bytes = bytes_of(program, layout, collective, collective.arrays[i]);
        images += round_up(bytes.from, memory_alignment) + round_up(bytes.to, memory_alignment);
    }
    staging.images = take(images);
    return staging;
}

scalide_status allocate_staging(scalide_binding &binding) {
    const scalide_program &program = *binding.program;
    uint64_t bytes = 0;
    for (int32_t i = 0; i < program.step_count; ++i)
        if (program.steps[i].collective) bytes = std::max(bytes, staging_of(binding, *program.steps[i].collective).bytes);
    if (bytes == 0) return SCALIDE_OK;
    binding.staging = allocate(binding.context->allocator, bytes);
    if (binding.staging) return SCALIDE_OK;
    start_message(binding.context) << program.name << ": out of memory: cannot allocate the messages between ranks (" << bytes
                                   << " bytes). Bind smaller arrays.";
    return SCALIDE_OUT_OF_MEMORY;
}

} // namespace scalide

#include "base/memory.h"
#include "base/strides.h"
#include "bind/block_tables.h"
#include "bind/check.h"
#include <algorithm>
#include <cmath>

namespace scalide {

namespace {

uint64_t element_count(const scalide_array &array) {
    uint64_t count = 1;
    for (int32_t axis = 0; axis < array.rank; ++axis) count *= static_cast<uint64_t>(array.extent[axis]);
    return count;
}

uint64_t data_bytes(const scalide_array &array) { return element_count(array) * scalide_dtype_size(array.dtype); }

bool check_strides(const Call &call, int32_t argument) {
    const scalide_array &array = call.array(argument);
    Offsets offsets;
    if (!find_offsets(array, &offsets)) {
        complain(call, argument)
            << "the strides must be small enough for addresses in 64 bits, got other strides. Count strides in elements.";
        return false;
    }
    if (call.program.arguments[argument].role == SCALIDE_INPUT || has_distinct_elements(array)) return true;
    Text text = complain(call, argument) << "a run writes this array, so the strides must give each element its own memory, got strides [";
    for (int32_t axis = 0; axis < array.rank; ++axis) text << (axis > 0 ? ", " : "") << array.stride[axis];
    text << "]. Pass an array whose rows do not overlap.";
    return false;
}

bool check_address(const Call &call, int32_t argument, const char *what, const void *memory, uint64_t alignment) {
    const uint64_t rest = reinterpret_cast<uintptr_t>(memory) % alignment;
    if (rest == 0) return true;
    complain(call, argument) << what << " must be aligned to " << alignment << " bytes; this address is " << rest << " bytes past a "
                             << alignment << "-byte boundary. Use scalide_allocate or aligned_alloc(64, size).";
    return false;
}

bool check_device(const Call &call, int32_t argument, const char *what, const void *memory) {
    Device *device = call.context->device;
    if (!device || !memory || device->driver->holds(*device, memory)) return true;
    complain(call, argument) << what
                             << " must point to memory of the context's device. Allocate it with scalide_allocate and copy to it with "
                                "scalide_copy_in.";
    return false;
}

constexpr uint64_t device_access = 16; ///< bytes that one instruction of a device reads (see schedules/gpu/map.cpp)

bool check_data(const Call &call, int32_t argument) {
    const scalide_array &array = call.array(argument);
    const uint64_t bytes = data_bytes(array);
    if (bytes == 0) return true;
    if (!array.data) {
        complain(call, argument) << "data must point to " << bytes << " bytes, got NULL. Pass the address of the array's memory.";
        return false;
    }
    // If Halide both reads and writes a buffer, it accesses whole vectors at aligned addresses. An inout array with strides is copied.
    const bool in_place = array.rank > 0 && is_dense(array);
    const scalide_argument &row = call.program.arguments[argument];
    const bool whole_vectors = in_place && (is_overwritten(row.role) || is_carried_in_place(call.program, row.data_buffer));
    const uint64_t alone = call.context->device && in_place ? device_access : scalide_dtype_size(array.dtype);
    const uint64_t alignment = whole_vectors ? memory_alignment : alone;
    return check_strides(call, argument) && check_address(call, argument, "data", array.data, alignment) &&
           check_device(call, argument, "data", array.data);
}

/// Rules assume that a scale is neither NaN nor negative. A scale of 0 belongs to an array of zeros, and an infinite scale to an array of
/// infinities. The host cannot read a device's memory without waiting for the device.
bool check_scale_value(const Call &call, int32_t argument) {
    const float *scale = call.array(argument).scale;
    if (!scale || call.program.arguments[argument].role == SCALIDE_OUTPUT || call.context->device) return true;
    const char *wrong = std::isnan(*scale) ? "NaN" : std::signbit(*scale) ? "a negative number" : nullptr;
    if (!wrong) return true;
    complain(call, argument) << "scale must not be NaN or negative, got " << wrong
                             << ". Write the scale before the call. The sign of a value belongs to its data.";
    return false;
}

bool check_scale(const Call &call, int32_t argument) {
    const scalide_array &array = call.array(argument);
    const bool scaled = call.program.arguments[argument].scale_buffer >= 0;
    if (scaled && !array.scale) {
        complain(call, argument) << "scale must point to an f32, got NULL. The argument is scaled: pass the address of its scale.";
        return false;
    }
    if (!scaled && array.scale) {
        complain(call, argument) << "scale must be NULL, because the argument is not scaled. Multiply data by the scale, or build the "
                                    "program with this argument scaled.";
        return false;
    }
    return check_address(call, argument, "scale", array.scale, sizeof(float)) && check_device(call, argument, "scale", array.scale) &&
           check_scale_value(call, argument);
}

MemoryRange range_of_scale(const scalide_array &array) {
    const auto begin = reinterpret_cast<uintptr_t>(array.scale);
    return {begin, begin == 0 ? 0 : begin + sizeof(float)};
}

bool touch(const MemoryRange &a, const MemoryRange &b) { return a.begin < b.end && b.begin < a.end; }

bool parts_overlap(const scalide_array &array) { return touch(range_of_data(array), range_of_scale(array)); }

bool overlap(const scalide_array &a, const scalide_array &b) {
    return share_elements(a, b) || touch(range_of_data(a), range_of_scale(b)) || touch(range_of_scale(a), range_of_data(b)) ||
           touch(range_of_scale(a), range_of_scale(b));
}

/// A part of an argument in memory.
struct Piece {
    MemoryRange range;
    bool is_written;
};

/// Pairs of fewer arguments are compared faster than they are sorted.
constexpr int32_t fewest_sorted = 16;

/// Returns true if no written piece touches another piece. The pieces are sorted by address.
bool are_apart(const Piece *pieces, int32_t count) {
    uintptr_t end = 0, written_end = 0; // of the pieces before
    for (int32_t i = 0; i < count; ++i) {
        const auto &[range, is_written] = pieces[i];
        if (range.begin < (is_written ? end : written_end)) return false;
        end = std::max(end, range.end);
        if (is_written) written_end = std::max(written_end, range.end);
    }
    return true;
}

/// Returns true if a sorted list of all pieces shows that the arrays are apart. Otherwise the arrays must be compared in pairs, which takes
/// 4 ms for 400 arguments.
bool are_apart(const Call &call) {
    const int32_t arguments = call.program.argument_count;
    auto *pieces =
        arguments < fewest_sorted ? nullptr : static_cast<Piece *>(allocate(call.context->allocator, 2 * arguments * sizeof(Piece)));
    if (!pieces) return false;
    int32_t count = 0;
    for (int32_t i = 0; i < arguments; ++i) {
        const int32_t role = call.program.arguments[i].role;
        if (!is_used_by_runs(role)) continue;
        for (const MemoryRange &range : {range_of_data(call.array(i)), range_of_scale(call.array(i))})
            if (range.begin < range.end) pieces[count++] = {range, role != SCALIDE_INPUT};
    }
    std::sort(pieces, pieces + count, [](const Piece &a, const Piece &b) { return a.range.begin < b.range.begin; });
    const bool apart = are_apart(pieces, count);
    release(call.context->allocator, pieces);
    return apart;
}

bool touches_arena(const Call &call, const scalide_array &array) {
    const auto begin = reinterpret_cast<uintptr_t>(call.arena);
    const MemoryRange arena = {begin, begin + call.arena_bytes};
    return touch(range_of_data(array), arena) || touch(range_of_scale(array), arena);
}

} // namespace

bool check_memory(const Call &call, int32_t argument) {
    if (!is_used_by_runs(call.program.arguments[argument].role)) return true;
    return check_data(call, argument) && check_scale(call, argument);
}

bool check_overlap(const Call &call) {
    for (int32_t i = 0; call.arena && i < call.program.argument_count; ++i) {
        if (!is_used_by_runs(call.program.arguments[i].role) || !touches_arena(call, call.array(i))) continue;
        complain(call, i) << "the memory overlaps with the arena of scalide_set_arena. Pass separate memory.";
        return false;
    }
    if (are_apart(call)) return true;
    for (int32_t written = 0; written < call.program.argument_count; ++written) {
        if (call.program.arguments[written].role == SCALIDE_INPUT || !is_used_by_runs(call.program.arguments[written].role)) continue;
        for (int32_t other = 0; other < call.program.argument_count; ++other) {
            const scalide_array &array = call.array(written);
            if (!is_used_by_runs(call.program.arguments[other].role)) continue;
            if (!(written == other ? parts_overlap(array) : overlap(array, call.array(other)))) continue;
            complain(call, written) << "a run writes this memory, but it overlaps with " << call.program.arguments[other].name
                                    << ". Pass separate memory.";
            return false;
        }
    }
    return true;
}

} // namespace scalide

#include "run/collectives.h"
#include <cstring>

namespace scalide {

namespace {

/// Returns the part of the chunk of a rank that is in an array of `all` bytes.
uint64_t part_of_chunk(const MovedBytes &bytes, uint64_t all, uint64_t rank) {
    const uint64_t begin = rank * bytes.chunk;
    return begin < all ? std::min(bytes.chunk, all - begin) : 0;
}

/// Writes the chunk of an array into a message. Its rest is 0, so that a message has no bytes of other data.
void pack(char *chunk, const char *from, uint64_t bytes, uint64_t padded) {
    if (bytes > 0) std::memcpy(chunk, from, bytes);
    if (bytes < padded) std::memset(chunk + bytes, 0, padded - bytes);
}

/// Writes what this rank sends: one message for each rank, or one for all.
void pack_array(const scalide_collective &collective, const Staging &staging, uint64_t message, uint64_t ranks, const MovedArray &array) {
    if (collective.kind == SCALIDE_COLLECT) return pack(staging.send + array.offset, array.from, array.bytes.chunk, array.bytes.padded);
    for (uint64_t rank = 0; rank < ranks; ++rank)
        pack(staging.send + rank * message + array.offset, array.from + rank * array.bytes.chunk,
             part_of_chunk(array.bytes, array.bytes.from, rank), array.bytes.padded);
}

void unpack_array(const Staging &staging, uint64_t message, uint64_t ranks, const MovedArray &array) {
    for (uint64_t rank = 0; rank < ranks; ++rank) {
        const uint64_t bytes = part_of_chunk(array.bytes, array.bytes.to, rank);
        if (bytes > 0) std::memcpy(array.to + rank * array.bytes.chunk, staging.receive + rank * message + array.offset, bytes);
    }
}

/// Calls the transport. `bytes`: to each rank.
bool send(scalide_context *context, const Group &group, int32_t kind, const char *from, char *to, uint64_t bytes) {
    if (bytes == 0) return true;
    char message[sizeof(context->failure) / 2] = "";
    const scalide_transport &transport = group.transport;
    const auto call = kind == SCALIDE_COLLECT ? transport.all_gather : transport.all_to_all;
    return call(transport.self, from, to, bytes, message, sizeof(message)) == 0 || fail_transport(context, group, message);
}

} // namespace

bool fail_transport(scalide_context *context, const Group &group, const char *message) {
    char words[sizeof(context->failure)];
    Text text(words, sizeof(words), Text::Use::message);
    text << "group ";
    text.name(group.name) << ": " << (*message ? message : "the transport failed");
    const size_t length = std::strlen(words);
    if (words[length - 1] != '.') text << '.';
    fail_run(context, SCALIDE_TRANSPORT_FAILED, words);
    return false;
}

bool exchange(const scalide_binding &binding, const scalide_collective &collective, const Staging &staging) {
    const Group &group = group_of(binding, collective.group);
    const auto ranks = static_cast<uint64_t>(group.transport.ranks);
    if (is_message(*binding.program, *binding.layout, collective))
        return for_each_array(binding, collective, staging, [&](const MovedArray &array) {
            return send(binding.context, group, collective.kind, array.from, array.to, array.bytes.chunk);
        });
    const uint64_t message = message_bytes(*binding.program, *binding.layout, collective);
    for_each_array(binding, collective, staging, [&](const MovedArray &array) {
        pack_array(collective, staging, message, ranks, array);
        return true;
    });
    if (!send(binding.context, group, collective.kind, staging.send, staging.receive, message)) return false;
    return for_each_array(binding, collective, staging, [&](const MovedArray &array) {
        unpack_array(staging, message, ranks, array);
        return true;
    });
}

void abort_groups(const scalide_binding &binding, const char *why, const Group *spared) {
    const scalide_program &program = *binding.program;
    for (int32_t i = 0; i < program.symbol_count; ++i) {
        if (program.symbols[i].source != SCALIDE_RANKS) continue;
        const Group &group = group_of(binding, i);
        if (&group != spared && group.transport.ranks > 1) group.transport.abort(group.transport.self, why);
    }
}

} // namespace scalide

// Contexts that are ranks of groups.
#include "base/float_environment.h"
#include "context/context.h"
#include "context/entry.h"
#include "groups/group.h"
#include <cstring>
#include <new>

using namespace scalide;

namespace {

/// Starts the message about a group.
Text complain(scalide_context *context, const char *function, const char *group) {
    Text text = start_message(context);
    text << function << ": group ";
    text.name(group) << ": ";
    return text;
}

/// Checks that the context can join a group of this name.
scalide_status check_name(scalide_context *context, const char *function, const char *group) {
    if (*group == 0) {
        start_message(context) << function << ": the name of the group must not be empty.";
    } else if (find_group(context->groups, group)) {
        complain(context, function, group) << "this context is a rank of the group already. Join a group once, before scalide_bind.";
    } else {
        return SCALIDE_OK;
    }
    return SCALIDE_INVALID_ARGUMENT;
}

/// Joins a group whose transport open(&transport, failure) makes.
template<typename Open>
scalide_status join(scalide_context *context, const char *function, const char *name, Open open) {
    scalide_status status = check_name(context, function, name);
    if (status != SCALIDE_OK) return status;
    const size_t length = std::strlen(name) + 1;
    void *memory = allocate(context->allocator, sizeof(Group) + length);
    if (!memory) {
        complain(context, function, name) << "out of memory: cannot allocate the group.";
        return SCALIDE_OUT_OF_MEMORY;
    }
    char *copy = static_cast<char *>(memory) + sizeof(Group);
    std::memcpy(copy, name, length);
    auto *group = new (memory) Group{context->groups, copy, {}};
    char words[1024];
    Text failure(words, sizeof(words), Text::Use::message);
    status = open(&group->transport, failure);
    if (status == SCALIDE_OK) {
        context->groups = group;
    } else {
        complain(context, function, name) << words;
        release(context->allocator, memory);
    }
    return status;
}

/// What all ranks send.
struct Sent {
    const void *send;
    void *receive;
    size_t bytes;
};

/// Transports move multiples of 64 bytes, so the bytes of each rank are padded.
scalide_status gather_padded(scalide_context *context, const Group &group, const Sent &sent) {
    const auto ranks = static_cast<size_t>(group.transport.ranks);
    const size_t padded = round_up(sent.bytes, memory_alignment);
    auto *memory = static_cast<char *>(allocate(context->allocator, padded * (ranks + 1)));
    if (!memory) {
        complain(context, "scalide_all_gather", group.name) << "out of memory: cannot allocate the padded arrays.";
        return SCALIDE_OUT_OF_MEMORY;
    }
    std::memset(memory, 0, padded);
    std::memcpy(memory, sent.send, sent.bytes);
    char words[1024] = "";
    const scalide_transport &transport = group.transport;
    const int failed = transport.all_gather(transport.self, memory, memory + padded, padded, words, sizeof(words));
    if (failed) complain(context, "scalide_all_gather", group.name) << words << '.';
    for (size_t rank = 0; !failed && rank < ranks; ++rank)
        std::memcpy(static_cast<char *>(sent.receive) + rank * sent.bytes, memory + padded * (rank + 1), sent.bytes);
    release(context->allocator, memory);
    return failed ? SCALIDE_TRANSPORT_FAILED : SCALIDE_OK;
}

const Group *group_of(const scalide_context *context, const char *name) {
    return context && name ? find_group(context->groups, name) : nullptr;
}

} // namespace

scalide_status scalide_join(scalide_context *context, const char *group, const scalide_transport *transport) {
    const Entry entry(context, "scalide_join", {{"group", group}, {"transport", transport}});
    if (entry.status() != SCALIDE_OK) return entry.status();
    return join(context, "scalide_join", group, [=](scalide_transport *copy, Text &failure) {
        if (!check_transport(*transport, failure)) return SCALIDE_INVALID_ARGUMENT;
        *copy = *transport;
        return SCALIDE_OK;
    });
}

scalide_status scalide_join_alone(scalide_context *context, const char *group) {
    const Entry entry(context, "scalide_join_alone", {{"group", group}});
    if (entry.status() != SCALIDE_OK) return entry.status();
    return join(context, "scalide_join_alone", group, [](scalide_transport *transport, Text &) {
        *transport = lone_transport();
        return SCALIDE_OK;
    });
}

scalide_status scalide_join_mpi(scalide_context *context, const char *group, const void *communicator) {
    const Entry entry(context, "scalide_join_mpi", {{"group", group}});
    if (entry.status() != SCALIDE_OK) return entry.status();
    const FloatEnvironment environment;
    return join(context, "scalide_join_mpi", group,
                [=](scalide_transport *transport, Text &failure) { return open_mpi(communicator, transport, failure); });
}

scalide_status scalide_join_threads(scalide_context *context, const char *group, scalide_thread_group *threads, int32_t rank) {
    const Entry entry(context, "scalide_join_threads", {{"group", group}, {"threads", threads}});
    if (entry.status() != SCALIDE_OK) return entry.status();
    return join(context, "scalide_join_threads", group,
                [=](scalide_transport *transport, Text &failure) { return open_threads(*threads, rank, transport, failure); });
}

scalide_status scalide_all_gather(scalide_context *context, const char *group, const void *send, void *receive, size_t bytes) {
    const Entry entry(context, "scalide_all_gather", {{"group", group}, {"send", send || bytes == 0}, {"receive", receive || bytes == 0}});
    if (entry.status() != SCALIDE_OK) return entry.status();
    const Group *found = find_group(context->groups, group);
    if (!found) {
        complain(context, "scalide_all_gather", group) << "this context is no rank of the group. Join it first, for example by "
                                                          "scalide_join_mpi.";
        return SCALIDE_INVALID_ARGUMENT;
    }
    return bytes == 0 ? SCALIDE_OK : gather_padded(context, *found, {send, receive, bytes});
}

int32_t scalide_group_ranks(const scalide_context *context, const char *group) {
    const Group *found = group_of(context, group);
    return found ? found->transport.ranks : -1;
}

int32_t scalide_group_rank(const scalide_context *context, const char *group) {
    const Group *found = group_of(context, group);
    return found ? found->transport.rank : -1;
}

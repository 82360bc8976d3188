#pragma once
#include "base/text.h"
#include "scalide/groups.h"

/// Groups of ranks, as a context knows them.
namespace scalide {

/// A group in which a context is a rank. The name follows the structure in one block of memory.
struct Group {
    Group *next;
    const char *name;
    scalide_transport transport;
};

/// Returns the group with this name, or nullptr.
inline const Group *find_group(const Group *first, const char *name) {
    for (; first; first = first->next) {
        const char *a = first->name, *b = name;
        while (*a && *a == *b) ++a, ++b;
        if (*a == *b) return first;
    }
    return nullptr;
}

/// Checks a table of the application. `failure` gets the requirement that it does not meet, and what to do.
bool check_transport(const scalide_transport &transport, Text &failure);

/// Returns the transport of a group with one rank.
scalide_transport lone_transport();

/// Makes this rank one of a group of threads. If it fails, `failure` gets a message.
scalide_status open_threads(scalide_thread_group &group, int32_t rank, scalide_transport *transport, Text &failure);

/// Makes this process a rank over MPI (see scalide_join_mpi). If it fails, `failure` gets a message.
scalide_status open_mpi(const void *communicator, scalide_transport *transport, Text &failure);

} // namespace scalide

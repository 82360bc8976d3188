// The C++ interface of groups of ranks: C++17, header only, over groups.h. It throws scalide::runtime::Error.
//
//     Context context;
//     join_mpi(context, "data");                       // or join_alone(context, "data")
//     Binding step = Binding::allocate(context, step_program(), {{"b", 64}}, state);
//     step.run();                                      // waits in each exchange for the other ranks
//
// The rules of groups.h hold.
#ifndef SCALIDE_GROUPS_HPP
#define SCALIDE_GROUPS_HPP

#include "scalide/groups.h"
#include "scalide/scalide.hpp"
#include <cstdio>
#include <exception>

namespace scalide::runtime {

/// Moves bytes between the ranks of a group, as scalide_transport does. Derive a class to use an engine of your own. all_gather and
/// all_to_all may throw a std::exception, whose what() becomes part of the message of the run. The other functions must not throw.
class Transport {
public:
    Transport() = default;
    Transport(const Transport &) = delete;
    Transport &operator=(const Transport &) = delete;
    virtual ~Transport() = default;

    virtual int32_t ranks() const noexcept = 0;
    virtual int32_t rank() const noexcept = 0;
    virtual void all_gather(const void *send, void *receive, size_t bytes) = 0;
    virtual void all_to_all(const void *send, void *receive, size_t bytes) = 0;
    virtual void abort(const char *why) noexcept = 0;
};

namespace detail {

/// Calls a function of a transport. Returns 0, or 1 and the message of the exception.
template<typename Call>
int call_transport(char *message, size_t message_size, Call call) noexcept {
    try {
        call();
        return 0;
    } catch (const std::exception &error) {
        std::snprintf(message, message_size, "%s", error.what());
    } catch (...) {
        std::snprintf(message, message_size, "an exception of unknown type");
    }
    return 1;
}

inline scalide_transport table_of(Transport &transport) {
    scalide_transport table = {};
    table.struct_size = sizeof(table);
    table.ranks = transport.ranks();
    table.rank = transport.rank();
    table.self = &transport;
    table.all_gather = [](void *self, const void *send, void *receive, size_t bytes, char *message, size_t message_size) {
        return call_transport(message, message_size, [&] { static_cast<Transport *>(self)->all_gather(send, receive, bytes); });
    };
    table.all_to_all = [](void *self, const void *send, void *receive, size_t bytes, char *message, size_t message_size) {
        return call_transport(message, message_size, [&] { static_cast<Transport *>(self)->all_to_all(send, receive, bytes); });
    };
    table.abort = [](void *self, const char *why) { static_cast<Transport *>(self)->abort(why); };
    table.close = [](void *self) { delete static_cast<Transport *>(self); };
    return table;
}

} // namespace detail

/// Makes the context a rank of a group. The context destroys the transport at its own end.
inline void join(const Context &context, const std::string &group, std::unique_ptr<Transport> transport) {
    if (!transport) detail::refuse("join: the transport must not be null.");
    const scalide_transport table = detail::table_of(*transport);
    context.check(scalide_join(context.handle(), group.c_str(), &table));
    static_cast<void>(transport.release()); // scalide_transport::close deletes it
}

/// Makes the context the only rank of a group.
inline void join_alone(const Context &context, const std::string &group) {
    context.check(scalide_join_alone(context.handle(), group.c_str()));
}

/// Makes the context a rank of a group of processes over MPI. `communicator` is the address of an MPI_Comm. NULL: all processes.
inline void join_mpi(const Context &context, const std::string &group, const void *communicator = nullptr) {
    context.check(scalide_join_mpi(context.handle(), group.c_str(), communicator));
}

/// Threads of one process that exchange arrays. It is move-only. The contexts of its ranks keep the group alive.
class ThreadGroup {
public:
    /// `limit_seconds`: an exchange fails if a rank has not come after so many seconds; 0: no limit.
    explicit ThreadGroup(int32_t ranks, double limit_seconds = 0) : group_(nullptr, scalide_thread_group_destroy) {
        char message[512] = "";
        scalide_thread_group *created = nullptr;
        const scalide_status status = scalide_thread_group_create(ranks, limit_seconds, &created, message, sizeof(message));
        if (status != SCALIDE_OK) throw Error(status, *message ? message : scalide_status_string(status));
        group_.reset(created);
    }

    /// Makes the context one of the ranks.
    void join(const Context &context, const std::string &group, int32_t rank) const {
        if (!group_) detail::refuse("this ThreadGroup is empty. Do not use it after a move.");
        context.check(scalide_join_threads(context.handle(), group.c_str(), group_.get(), rank));
    }

private:
    std::unique_ptr<scalide_thread_group, void (*)(scalide_thread_group *)> group_;
};

/// Returns the number of ranks of a group; -1: the context is no rank of it.
inline int32_t ranks(const Context &context, const std::string &group) { return scalide_group_ranks(context.handle(), group.c_str()); }

/// Returns the number of this context in a group, from 0; -1: the context is no rank of it.
inline int32_t rank(const Context &context, const std::string &group) { return scalide_group_rank(context.handle(), group.c_str()); }

} // namespace scalide::runtime
#endif

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

namespace detail {

/// Returns the rows of the first axis of `whole` for each rank, or -1 if both arrays have one shape. Throws if `part` is neither.
inline int64_t rows_of_ranks(const std::string &name, const Array &part, const Array &whole, int32_t ranks) {
    const Shape own = part.shape(), all = whole.shape();
    if (own == all) return -1;
    Shape wanted = own;
    if (!wanted.empty()) wanted[0] *= ranks;
    if (wanted != all)
        refuse(name + ": the shape " + text_of(all) + " of the whole array must be the shape of the part, " + text_of(own) +
               ", or have a first extent that is " + std::to_string(ranks) + " times as large.");
    return own[0];
}

inline void gather_bytes(const Context &context, const std::string &group, const void *sent, void *received, size_t bytes) {
    context.check(scalide_all_gather(context.handle(), group.c_str(), sent, received, bytes));
}

inline bool has_one_scale(const Context &context, const std::string &group, float scale, int32_t ranks) {
    std::vector<float> scales(static_cast<size_t>(ranks));
    gather_bytes(context, group, &scale, scales.data(), sizeof(float));
    return std::all_of(scales.begin(), scales.end(), [&](float other) { return other == scales[0]; });
}

inline int32_t joined_ranks(const Context &context, const std::string &group) {
    const int32_t ranks = scalide_group_ranks(context.handle(), group.c_str());
    if (ranks < 0) refuse("the context is no rank of group " + group + ". Join it first, for example by join_mpi.");
    return ranks;
}

} // namespace detail

/// Joins the parts of a state that is divided between the ranks of a group, so that it can be saved. `whole` is a state of the same program
/// with larger symbols. An array whose first extent is as many times as large there as there are ranks gets the parts of all ranks, in
/// their order. Other arrays have one shape and are copied. All ranks call it. Elements keep their bits. But
/// if the parts of a scaled array have different scales, their values are rounded to a common one.
inline void gather(const Context &context, const std::string &group, const State &part, State &whole) {
    const int32_t ranks = detail::joined_ranks(context, group);
    for (const std::string &name : part.names()) {
        const Array own = part[name].host();
        Array all = whole[name].host();
        scalide_array filled = all.descriptor();
        if (detail::rows_of_ranks(name, own, all, ranks) < 0) {
            whole[name].set_bits(own.descriptor());
            continue;
        }
        const scalide_array sent = own.descriptor();
        if (!sent.scale || detail::has_one_scale(context, group, *sent.scale, ranks)) {
            if (sent.scale) *filled.scale = *sent.scale;
            detail::gather_bytes(context, group, sent.data, filled.data, detail::bytes_of(sent));
        } else {
            const std::vector<float> values = own.get();
            std::vector<float> all_values(values.size() * static_cast<size_t>(ranks));
            detail::gather_bytes(context, group, values.data(), all_values.data(), values.size() * sizeof(float));
            whole[name].set(all_values);
            continue;
        }
        whole[name].set_bits(filled);
    }
}

/// Gives each rank its part of a whole state, for example of one that was loaded. It is the inverse of gather(), for any number of ranks.
/// It exchanges nothing.
inline void divide(const Context &context, const std::string &group, const State &whole, State &part) {
    const int32_t ranks = detail::joined_ranks(context, group), rank = scalide_group_rank(context.handle(), group.c_str());
    for (const std::string &name : part.names()) {
        const Array all = whole[name].host(), own = part[name].host();
        scalide_array taken = all.descriptor();
        const int64_t rows = detail::rows_of_ranks(name, own, all, ranks);
        if (rows >= 0) {
            taken.data = static_cast<char *>(taken.data) + static_cast<size_t>(rank) * detail::bytes_of(own.descriptor());
            taken.extent[0] = rows;
        }
        part[name].set_bits(taken);
    }
}

} // namespace scalide::runtime
#endif

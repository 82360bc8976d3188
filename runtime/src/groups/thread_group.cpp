// Ranks that are threads of one process. An exchange has two meetings of all ranks: before the first one, each rank publishes its memory;
// then each rank copies what it receives; after the second one, the memory of a rank may change again.
#include "base/memory.h"
#include "groups/group.h"
#include <atomic>
#include <cstring>
#include <ctime>
#include <new>
#include <pthread.h>

namespace scalide {

namespace {

enum class Exchange : uint8_t { all_gather, all_to_all };

/// A rank of the group.
struct Place {
    scalide_thread_group *group;
    int32_t rank;
    bool has_joined;
    bool is_here; ///< waits for the others in the first meeting
    Exchange exchange;
    const char *send;
    size_t bytes;
};

constexpr double most_seconds = 1e9;
constexpr int64_t nanoseconds = 1'000'000'000;

} // namespace

} // namespace scalide

struct scalide_thread_group {
    std::atomic<int32_t> holders{1}; ///< the caller's handle and the ranks
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t changed;
    double limit; ///< seconds; 0: none
    int32_t ranks;
    int32_t here = 0;       ///< ranks in the meeting
    uint64_t meetings = 0;  ///< complete ones
    bool is_broken = false; ///< no exchange can begin any more
    char why[512] = "";     ///< the message of all further exchanges
    scalide::Place *places;
};

namespace scalide {

namespace {

class Locked {
public:
    explicit Locked(scalide_thread_group &group) : mutex_(group.mutex) { pthread_mutex_lock(&mutex_); }
    Locked(const Locked &) = delete;
    Locked &operator=(const Locked &) = delete;
    ~Locked() { pthread_mutex_unlock(&mutex_); }

private:
    pthread_mutex_t &mutex_;
};

void hold(scalide_thread_group &group) { group.holders.fetch_add(1); }

void release_holder(scalide_thread_group *group) {
    if (group->holders.fetch_sub(1) > 1) return;
    pthread_cond_destroy(&group->changed);
    pthread_mutex_destroy(&group->mutex);
    release(group);
}

/// Ends the exchanges of the group. The first reason stays. The group is locked.
Text break_group(scalide_thread_group &group) {
    const bool is_first = !group.is_broken;
    group.is_broken = true;
    pthread_cond_broadcast(&group.changed);
    return Text(is_first ? group.why : nullptr, is_first ? sizeof(group.why) : 0, Text::Use::message);
}

timespec end_of(double seconds) {
    timespec time = {};
    clock_gettime(CLOCK_MONOTONIC, &time);
    const auto whole = static_cast<int64_t>(seconds);
    const int64_t rest = int64_t(time.tv_nsec) + static_cast<int64_t>((seconds - static_cast<double>(whole)) * 1e9);
    time.tv_sec += static_cast<time_t>(whole + rest / nanoseconds);
    time.tv_nsec = static_cast<decltype(time.tv_nsec)>(rest % nanoseconds);
    return time;
}

/// Prints `2.5 seconds`.
void print_seconds(Text &text, double seconds) {
    const auto milliseconds = static_cast<int64_t>(seconds * 1000 + 0.5);
    text << milliseconds / 1000;
    int64_t rest = milliseconds % 1000;
    if (rest > 0) text << '.';
    for (int64_t digit = 100; rest > 0; rest %= digit, digit /= 10) text << static_cast<char>('0' + rest / digit);
    text << (milliseconds == 1000 ? " second" : " seconds");
}

/// Breaks the group because some ranks have not come. The group is locked.
void break_at_limit(scalide_thread_group &group) {
    constexpr int32_t most_named = 8;
    const int32_t missing = group.ranks - group.here;
    Text text = break_group(group);
    text << (missing == 1 ? "rank" : "ranks");
    int32_t named = 0;
    for (int32_t i = 0; i < group.ranks && named < most_named; ++i)
        if (!group.places[i].is_here) text << (named++ == 0 ? " " : ", ") << i;
    if (missing > named) text << " and " << missing - named << " more";
    text << " did not come within ";
    print_seconds(text, group.limit);
}

/// All ranks must exchange the same. The group is locked.
bool check_meeting(scalide_thread_group &group) {
    const Place &first = group.places[0];
    for (int32_t i = 1; i < group.ranks; ++i) {
        const Place &place = group.places[i];
        if (place.exchange == first.exchange && place.bytes == first.bytes) continue;
        const auto name = [](const Place &of) { return of.exchange == Exchange::all_gather ? "all_gather" : "all_to_all"; };
        break_group(group) << "rank " << i << " calls " << name(place) << " of " << uint64_t(place.bytes) << " bytes, and rank 0 "
                           << name(first) << " of " << uint64_t(first.bytes);
        return false;
    }
    return true;
}

/// Waits until all ranks have published their memory. False: the group is broken. The group is locked.
bool meet_first(scalide_thread_group &group, Place &own) {
    if (group.is_broken) return false;
    const uint64_t meeting = group.meetings;
    own.is_here = true;
    if (++group.here == group.ranks) {
        group.here = 0;
        for (int32_t i = 0; i < group.ranks; ++i) group.places[i].is_here = false;
        if (!check_meeting(group)) return false;
        ++group.meetings;
        pthread_cond_broadcast(&group.changed);
        return true;
    }
    const timespec end = end_of(group.limit);
    while (group.meetings == meeting && !group.is_broken) {
        if (group.limit == 0)
            pthread_cond_wait(&group.changed, &group.mutex);
        else if (pthread_cond_timedwait(&group.changed, &group.mutex, &end) != 0 && group.meetings == meeting && !group.is_broken)
            break_at_limit(group);
    }
    return group.meetings != meeting;
}

/// Waits until all ranks have copied. All of them are in this function or come soon, so it needs no limit.
void meet_again(scalide_thread_group &group) {
    const Locked locked(group);
    const uint64_t meeting = group.meetings;
    if (++group.here == group.ranks) {
        group.here = 0;
        ++group.meetings;
        pthread_cond_broadcast(&group.changed);
    }
    while (group.meetings == meeting) pthread_cond_wait(&group.changed, &group.mutex);
}

int exchange(Place &own, Exchange kind, const void *send, void *receive, size_t bytes, char *message, size_t message_size) {
    scalide_thread_group &group = *own.group;
    {
        const Locked locked(group);
        own.exchange = kind;
        own.send = static_cast<const char *>(send);
        own.bytes = bytes;
        if (!meet_first(group, own)) {
            Text(message, message_size) << group.why;
            return 1;
        }
    }
    // Each rank begins with another one, so that not all of them read the same memory at once.
    for (int32_t i = 0; i < group.ranks; ++i) {
        const auto from = static_cast<size_t>((own.rank + i) % group.ranks);
        const char *chunk = group.places[from].send + (kind == Exchange::all_to_all ? static_cast<size_t>(own.rank) * bytes : 0);
        std::memcpy(static_cast<char *>(receive) + from * bytes, chunk, bytes);
    }
    meet_again(group);
    return 0;
}

int all_gather(void *self, const void *send, void *receive, size_t bytes, char *message, size_t message_size) {
    return exchange(*static_cast<Place *>(self), Exchange::all_gather, send, receive, bytes, message, message_size);
}

int all_to_all(void *self, const void *send, void *receive, size_t bytes, char *message, size_t message_size) {
    return exchange(*static_cast<Place *>(self), Exchange::all_to_all, send, receive, bytes, message, message_size);
}

void leave_group(const Place &own, const char *why) {
    const Locked locked(*own.group);
    break_group(*own.group) << "rank " << own.rank << " has left: " << why;
}

void abort_group(void *self, const char *why) { leave_group(*static_cast<const Place *>(self), why); }

void close_group(void *self) {
    Place &own = *static_cast<Place *>(self);
    leave_group(own, "its context was destroyed");
    release_holder(own.group);
}

scalide_status create(int32_t ranks, double limit, scalide_thread_group **result, Text &failure) {
    Carver sizes;
    sizes.take<scalide_thread_group>(1);
    sizes.take<Place>(static_cast<uint64_t>(ranks));
    void *memory = allocate(sizes.bytes());
    if (!memory) {
        failure << "scalide_thread_group_create: out of memory: cannot allocate a group of " << ranks << " ranks.";
        return SCALIDE_OUT_OF_MEMORY;
    }
    Carver carver(memory);
    auto *group = new (carver.take<scalide_thread_group>(1)) scalide_thread_group{};
    group->limit = limit;
    group->ranks = ranks;
    group->places = carver.take<Place>(static_cast<uint64_t>(ranks));
    for (int32_t i = 0; i < ranks; ++i) group->places[i] = {group, i, false, false, Exchange::all_gather, nullptr, 0};
    pthread_condattr_t attributes; // the limit must not depend on changes of the time of day
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&group->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    *result = group;
    return SCALIDE_OK;
}

} // namespace

scalide_status open_threads(scalide_thread_group &group, int32_t rank, scalide_transport *transport, Text &failure) {
    if (rank < 0 || rank >= group.ranks) {
        failure << "rank must be in [0, " << group.ranks - 1 << "], got " << rank << '.';
        return SCALIDE_INVALID_ARGUMENT;
    }
    const Locked locked(group);
    Place &place = group.places[rank];
    if (place.has_joined) {
        failure << "rank " << rank << " of the threads has joined before. Give each context another rank, or create another group.";
        return SCALIDE_INVALID_ARGUMENT;
    }
    place.has_joined = true;
    hold(group);
    *transport = {sizeof(*transport), group.ranks, rank, &place, all_gather, all_to_all, abort_group, close_group};
    return SCALIDE_OK;
}

} // namespace scalide

scalide_status scalide_thread_group_create(int32_t ranks, double limit_seconds, scalide_thread_group **group, char *message,
                                           size_t message_size) {
    using namespace scalide;
    Text failure(message, message_size, Text::Use::message);
    if (group) *group = nullptr;
    if (!group) {
        failure << "scalide_thread_group_create: group must not be NULL.";
    } else if (ranks < 1 || ranks > SCALIDE_MAX_RANKS) {
        failure << "scalide_thread_group_create: ranks must be in [1, " << SCALIDE_MAX_RANKS << "], got " << ranks << '.';
    } else if (!(limit_seconds >= 0 && limit_seconds <= most_seconds)) {
        failure << "scalide_thread_group_create: limit_seconds must be in [0, 1e9]. Pass 0 for no limit.";
    } else {
        return create(ranks, limit_seconds, group, failure);
    }
    return SCALIDE_INVALID_ARGUMENT;
}

void scalide_thread_group_destroy(scalide_thread_group *group) {
    if (group) scalide::release_holder(group);
}

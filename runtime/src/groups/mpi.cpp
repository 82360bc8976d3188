// Ranks that are processes of an MPI job.
#include "base/memory.h"
#include "groups/group.h"
#include "groups/mpi_library.h"
#include <climits>
#include <cstring>
#include <ctime>
#include <new>
#include <pthread.h>
#include <unistd.h>

namespace scalide {

namespace {

/// MPI counts elements in 32 bits. All messages of the runtime are multiples of this many bytes.
constexpr size_t unit_bytes = 64;
constexpr int threads_multiple = 3; ///< MPI_THREAD_MULTIPLE of all libraries
constexpr int longest_text = 1024;  ///< more than MPI_MAX_ERROR_STRING of all libraries

/// A rank of a communicator.
template<typename Handle>
struct MpiRank {
    const MpiFunctions<Handle> &mpi;
    Handle comm, unit;
};

/// Whether the runtime has initialized MPI, and how many groups use it.
struct Life {
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    bool is_own = false;
    int32_t ranks = 0;
};
Life life;

bool is_good(int code) { return code == 0; }

template<typename Handle>
int fail(const MpiFunctions<Handle> &mpi, const char *function, int code, char *message, size_t message_size) {
    char words[longest_text] = "";
    int length = 0;
    if (!is_good(mpi.error_string(code, words, &length))) words[0] = 0;
    Text(message, message_size, Text::Use::message) << function << " failed: " << words;
    return 1;
}

/// Calls MPI_Allgather or MPI_Alltoall, which have the same parameters.
template<typename Handle>
int call(MpiRank<Handle> &rank, decltype(MpiFunctions<Handle>::all_gather) function, const char *name, const void *send, void *receive,
         size_t bytes, char *message, size_t message_size) {
    const bool has_units = bytes % unit_bytes == 0;
    const size_t count = has_units ? bytes / unit_bytes : bytes;
    if (count > INT_MAX) {
        Text(message, message_size) << name << ": a message of " << uint64_t(bytes) << " bytes to one rank is too large";
        return 1;
    }
    const Handle type = has_units ? rank.unit : rank.mpi.byte;
    const int code = function(send, static_cast<int>(count), type, receive, static_cast<int>(count), type, rank.comm);
    return is_good(code) ? 0 : fail(rank.mpi, name, code, message, message_size);
}

template<typename Handle>
int all_gather(void *self, const void *send, void *receive, size_t bytes, char *message, size_t message_size) {
    auto &rank = *static_cast<MpiRank<Handle> *>(self);
    return call(rank, rank.mpi.all_gather, "MPI_Allgather", send, receive, bytes, message, message_size);
}

template<typename Handle>
int all_to_all(void *self, const void *send, void *receive, size_t bytes, char *message, size_t message_size) {
    auto &rank = *static_cast<MpiRank<Handle> *>(self);
    return call(rank, rank.mpi.all_to_all, "MPI_Alltoall", send, receive, bytes, message, message_size);
}

/// MPI_Abort ends this process too, before scalide_run could return the message. So the message is written here.
template<typename Handle>
void abort_job(void *self, const char *why) {
    auto &rank = *static_cast<MpiRank<Handle> *>(self);
    int number = 0;
    rank.mpi.comm_rank(rank.mpi.world, &number);
    char words[2048];
    Text text(words, sizeof(words), Text::Use::message);
    text << "scalide: process " << number << " ends the MPI job: " << why;
    size_t size = std::strlen(words);
    if (size + 1 == sizeof(words)) --size;
    words[size++] = '\n';
    for (size_t done = 0; done < size;) {
        const ssize_t written = write(STDERR_FILENO, words + done, size - done);
        if (written <= 0) break;
        done += static_cast<size_t>(written);
    }
    const timespec moment = {0, 200'000'000}; // MPICH's launcher loses what a process has written just before this call
    nanosleep(&moment, nullptr);
    rank.mpi.abort(rank.mpi.world, 1);
}

void leave_job() {
    pthread_mutex_lock(&life.mutex);
    --life.ranks;
    pthread_mutex_unlock(&life.mutex);
}

template<typename Handle>
void free_rank(MpiRank<Handle> *rank) {
    int is_finalized = 0;
    rank->mpi.finalized(&is_finalized);
    if (!is_finalized) {
        rank->mpi.type_free(&rank->unit);
        rank->mpi.comm_free(&rank->comm);
    }
    release(rank);
    leave_job();
}

template<typename Handle>
void close_rank(void *self) {
    free_rank(static_cast<MpiRank<Handle> *>(self));
}

/// Initializes MPI unless the application has, and counts the new rank.
template<typename Handle>
scalide_status start(const MpiFunctions<Handle> &mpi, Text &failure) {
    pthread_mutex_lock(&life.mutex);
    int is_initialized = 0, is_finalized = 0, provided = 0, code = 0;
    mpi.finalized(&is_finalized);
    mpi.initialized(&is_initialized);
    if (!is_finalized && !is_initialized) {
        code = mpi.init_thread(nullptr, nullptr, threads_multiple, &provided);
        life.is_own = is_good(code);
    }
    const bool is_started = !is_finalized && is_good(code);
    if (is_started) ++life.ranks;
    pthread_mutex_unlock(&life.mutex);
    if (is_started) return SCALIDE_OK;
    failure << (is_finalized ? "MPI has been finalized, so no group can begin." : "MPI_Init_thread failed.");
    return SCALIDE_TRANSPORT_FAILED;
}

/// A process that an unknown launcher has started would be alone in its MPI job, and compute wrong results.
template<typename Handle>
bool check_launcher(const MpiLibrary &library, const MpiFunctions<Handle> &mpi, Text &failure) {
    int processes = 0;
    mpi.comm_size(mpi.world, &processes);
    const int32_t launched = launched_processes();
    if (processes != 1 || launched <= 1) return true;
    failure << "the launcher has started " << launched << " processes, but the MPI library of this process (" << library.name
            << ") sees 1. Set SCALIDE_MPI to the library that belongs to the launcher (mpirun).";
    return false;
}

template<typename Handle>
scalide_status open(const MpiLibrary &library, const MpiFunctions<Handle> &mpi, Handle comm, scalide_transport *transport, Text &failure) {
    const scalide_status started = start(mpi, failure);
    if (started != SCALIDE_OK) return started;
    void *memory = check_launcher(library, mpi, failure) ? allocate(sizeof(MpiRank<Handle>)) : nullptr;
    auto *rank = memory ? new (memory) MpiRank<Handle>{mpi, comm, mpi.byte} : nullptr;
    const char *function = "MPI_Comm_dup";
    int code = rank ? mpi.comm_dup(comm, &rank->comm) : 1, ranks = 0, number = 0;
    const auto next = [&](const char *name, auto &&call) {
        if (!is_good(code)) return;
        function = name;
        code = call();
    };
    next("MPI_Comm_set_errhandler", [&] { return mpi.comm_set_errhandler(rank->comm, mpi.errors_return); });
    next("MPI_Comm_size", [&] { return mpi.comm_size(rank->comm, &ranks); });
    next("MPI_Comm_rank", [&] { return mpi.comm_rank(rank->comm, &number); });
    next("MPI_Type_contiguous", [&] { return mpi.type_contiguous(static_cast<int>(unit_bytes), mpi.byte, &rank->unit); });
    next("MPI_Type_commit", [&] { return mpi.type_commit(&rank->unit); });
    if (is_good(code)) {
        *transport = {sizeof(*transport), ranks, number, rank, all_gather<Handle>, all_to_all<Handle>, abort_job<Handle>,
                      close_rank<Handle>};
        return SCALIDE_OK;
    }
    const bool has_memory = rank || failure.size() > 0;
    if (rank) failure << function << " failed (error " << code << ").";
    if (!has_memory) failure << "out of memory: cannot allocate a rank.";
    leave_job();
    release(memory);
    return has_memory ? SCALIDE_TRANSPORT_FAILED : SCALIDE_OUT_OF_MEMORY;
}

template<typename Handle>
void finalize(const MpiFunctions<Handle> &mpi) {
    int is_finalized = 0;
    mpi.finalized(&is_finalized);
    if (!is_finalized) mpi.finalize();
}

/// A process that ends while it is in a group has failed. Then it does not finalize MPI, which would wait for the other processes, and the
/// launcher ends them.
__attribute__((destructor)) void finalize_own() {
    if (!life.is_own || life.ranks > 0) return;
    char words[64];
    Text unused(words, sizeof(words));
    const MpiLibrary *library = find_mpi(unused);
    if (library) library->is_open_mpi ? finalize(library->open_mpi) : finalize(library->mpich);
}

} // namespace

scalide_status open_mpi(const void *communicator, scalide_transport *transport, Text &failure) {
    const MpiLibrary *library = find_mpi(failure);
    if (!library) return SCALIDE_UNSUPPORTED;
    if (library->is_open_mpi) {
        const MpiFunctions<void *> &mpi = library->open_mpi;
        return open(*library, mpi, communicator ? *static_cast<void *const *>(communicator) : mpi.world, transport, failure);
    }
    const MpiFunctions<int> &mpi = library->mpich;
    return open(*library, mpi, communicator ? *static_cast<const int *>(communicator) : mpi.world, transport, failure);
}

} // namespace scalide

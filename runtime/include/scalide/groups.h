/* Runs one program on several ranks, which exchange arrays during a run. A rank is one process or one thread with a context of its own.
 *
 * A program that exchanges arrays names groups of ranks, such as `data`. Before scalide_bind, each context becomes one rank of each group:
 *   - scalide_join_mpi, for processes that mpirun has started;
 *   - scalide_join_threads, for threads of one process;
 *   - scalide_join_alone, for a run without other ranks;
 *   - scalide_join, with functions of the application that move bytes between ranks.
 * All ranks of a group then bind the same program with arrays of equal shapes, and call scalide_run equally often. A run waits in each
 * exchange until all ranks of the group are there. scalide_interrupt and the poll of a context do not end this wait. If data decide how
 * often a loop runs, or which branch runs, they must decide the same on all ranks where exchanges are inside.
 *
 * Failures. The first run of a binding compares what the ranks run. If they differ, scalide_run fails on all ranks, and scalide_message
 * says which rank differs and how. If the run of a rank fails, the runtime calls `abort` of the transports of its groups, so that the
 * other ranks do not wait for ever: their runs fail with SCALIDE_TRANSPORT_FAILED. A failure outside of a run, such as one of scalide_bind,
 * reaches the other ranks when the context is destroyed.
 *
 * NULL for a context, a name or a result is an error: SCALIDE_INVALID_ARGUMENT. C99. The rules of scalide.h for threads hold: one thread at
 * a time uses a context. */
#ifndef SCALIDE_GROUPS_H
#define SCALIDE_GROUPS_H

#include "scalide/scalide.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The largest number of ranks of a group. */
#define SCALIDE_MAX_RANKS 65536

/* Moves bytes between the ranks of a group. An application fills in this table to use an engine of its own.
 *
 * All ranks call the same function with the same `bytes`, which is a multiple of 64 and not 0. The memory of the host may begin at any
 * address. `send` and `receive` do not overlap, and the runtime writes neither during a call. A function returns 0. If it fails, it returns
 * another number and writes the reason to `message` (message_size bytes, ended with a zero), without a final stop. It must not throw. */
typedef struct {
    size_t struct_size;  /* sizeof(scalide_transport) */
    int32_t ranks, rank; /* the number of ranks, at least 1, and the number of this rank, from 0 */
    void *self;          /* the first argument of all functions */
    /* Sends `bytes` bytes to all ranks. `receive` gets ranks * bytes bytes: the bytes of rank 0, the bytes of rank 1, ... */
    int (*all_gather)(void *self, const void *send, void *receive, size_t bytes, char *message, size_t message_size);
    /* Sends `bytes` bytes to each rank: the first ones of `send` to rank 0, the next ones to rank 1, ... `receive` gets ranks * bytes
     * bytes: the bytes from rank 0, the bytes from rank 1, ... */
    int (*all_to_all)(void *self, const void *send, void *receive, size_t bytes, char *message, size_t message_size);
    /* The run of this rank failed because of `why`. Calls of the other ranks must fail, and must not wait for this rank. It may be called
     * several times. */
    void (*abort)(void *self, const char *why);
    /* The context is destroyed. It is the last call. */
    void (*close)(void *self);
} scalide_transport;

/* Makes the context a rank of a group. The context copies the table. It calls `close` when it is destroyed; if this function fails, it does
 * not call it. Errors: SCALIDE_INVALID_ARGUMENT (the context is in the group already, a wrong struct_size, ranks outside [1,
 * SCALIDE_MAX_RANKS], rank outside [0, ranks), a function is NULL, an empty name), SCALIDE_OUT_OF_MEMORY. */
scalide_status scalide_join(scalide_context *context, const char *group, const scalide_transport *transport);

/* Makes the context the only rank of a group. Errors: as scalide_join. */
scalide_status scalide_join_alone(scalide_context *context, const char *group);

/* Makes the context a rank of a group of processes that communicate over MPI. `communicator` is the address of an MPI_Comm of the
 * application, such as one for each row of a grid. NULL: all processes (MPI_COMM_WORLD). All processes of the communicator must call it.
 *
 * The runtime is not linked with MPI. It uses the MPI library that the process has loaded. If there is none, it loads the file that the
 * environment variable SCALIDE_MPI names, or libmpi.so.40 (Open MPI), libmpich.so.12 or libmpi.so.12 (MPICH and others with its binary
 * interface). Messages of the application cannot meet messages of the group, because the group has a communicator of its own.
 *
 * If the application has not initialized MPI, the runtime does, with MPI_THREAD_MULTIPLE. It then also finalizes MPI when the process ends
 * normally and the contexts of all groups have been destroyed. An application that initializes MPI asks for MPI_THREAD_MULTIPLE if several
 * threads run programs, and for MPI_THREAD_SERIALIZED if one thread does that is not its main thread.
 *
 * If a run of a rank fails, its message goes to the log of the context and to stderr, and MPI_Abort ends all processes. If the ranks differ
 * (see above), no process ends.
 *
 * Not supported: memory of devices in messages. The runtime copies it to the host first.
 * Errors: as scalide_join; SCALIDE_UNSUPPORTED (no MPI library), SCALIDE_TRANSPORT_FAILED (an MPI function failed). */
scalide_status scalide_join_mpi(scalide_context *context, const char *group, const void *communicator);

/* Threads of one process that exchange arrays by copies in memory. */
typedef struct scalide_thread_group scalide_thread_group;

/* Creates a group of threads. `limit_seconds`: an exchange fails on all ranks if one of them has not come after so many seconds; 0: no
 * limit. If it fails, *group is NULL, and `message` (message_size bytes, may be NULL) gets a text. Any thread may call this function and
 * the next two. Errors: SCALIDE_INVALID_ARGUMENT (ranks outside [1, SCALIDE_MAX_RANKS], a negative or infinite limit, or NaN),
 * SCALIDE_OUT_OF_MEMORY. */
scalide_status scalide_thread_group_create(int32_t ranks, double limit_seconds, scalide_thread_group **group, char *message,
                                           size_t message_size);
/* Makes the context rank `rank` of a group of threads. A rank joins once: after its context is destroyed, exchanges of the other ranks
 * fail. The order in which ranks join does not matter, and exchanges wait for ranks that have not joined. Each rank runs on a thread of its
 * own. Errors: as scalide_join; SCALIDE_INVALID_ARGUMENT (another context is or was this rank). */
scalide_status scalide_join_threads(scalide_context *context, const char *group, scalide_thread_group *threads, int32_t rank);
/* Releases the caller's handle. The contexts of the ranks keep the group alive. */
void scalide_thread_group_destroy(scalide_thread_group *group);

/* Sends `bytes` bytes of host memory to all ranks. `receive` has ranks * bytes bytes: from rank 0, from rank 1, ... All ranks call it with
 * equal `bytes`, and not during a run. Applications gather divided state with it, for a file. Errors: SCALIDE_INVALID_ARGUMENT (the context
 * is no rank of the group), SCALIDE_TRANSPORT_FAILED, SCALIDE_OUT_OF_MEMORY. */
scalide_status scalide_all_gather(scalide_context *context, const char *group, const void *send, void *receive, size_t bytes);

/* Returns the number of ranks of a group, or -1 if the context is no rank of it. */
int32_t scalide_group_ranks(const scalide_context *context, const char *group);
/* Returns the number of this context in a group, from 0, or -1 if it is no rank of it. */
int32_t scalide_group_rank(const scalide_context *context, const char *group);

#ifdef __cplusplus
}
#endif
#endif

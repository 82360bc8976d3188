#pragma once
#include "base/text.h"
#include "scalide/groups.h"

/// The MPI library of the process. The runtime finds it when it needs it, and is linked with none. No header of MPI is read, so this folder
/// declares what it calls. There are two binary interfaces: Open MPI has pointers as handles; MPICH and libraries with its interface (Intel
/// MPI, MVAPICH, Cray MPICH) have numbers.
namespace scalide {

/// The functions of an MPI library whose handles have this type.
template<typename Handle>
struct MpiFunctions {
    int (*initialized)(int *flag);
    int (*finalized)(int *flag);
    int (*init_thread)(int *argc, char ***argv, int required, int *provided);
    int (*finalize)();
    int (*comm_dup)(Handle comm, Handle *copy);
    int (*comm_free)(Handle *comm);
    int (*comm_size)(Handle comm, int *size);
    int (*comm_rank)(Handle comm, int *rank);
    int (*comm_set_errhandler)(Handle comm, Handle handler);
    int (*error_string)(int code, char *text, int *length);
    int (*type_contiguous)(int count, Handle type, Handle *made);
    int (*type_commit)(Handle *type);
    int (*type_free)(Handle *type);
    int (*all_gather)(const void *send, int send_count, Handle send_type, void *receive, int count, Handle type, Handle comm);
    int (*all_to_all)(const void *send, int send_count, Handle send_type, void *receive, int count, Handle type, Handle comm);
    int (*abort)(Handle comm, int code);
    Handle world, byte, errors_return;
};

/// The library that the process uses.
struct MpiLibrary {
    bool is_open_mpi;
    const char *name; ///< for messages: "the loaded MPI library", or a file
    MpiFunctions<void *> open_mpi;
    MpiFunctions<int> mpich;
};

/// Finds the library, at most once. Returns nullptr, with a message, if there is none.
const MpiLibrary *find_mpi(Text &failure);

/// The number of processes of this job as the launcher has told it to this process; 0: it has not.
int32_t launched_processes();

} // namespace scalide

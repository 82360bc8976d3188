#include "groups/mpi_library.h"
#include <cstdlib>
#include <dlfcn.h>
#include <pthread.h>

namespace scalide {

namespace {

/// One function or variable of the library.
template<typename T>
bool find(void *library, const char *name, T *found) {
    *found = reinterpret_cast<T>(dlsym(library, name));
    return *found != nullptr;
}

template<typename Handle>
bool find_functions(void *library, MpiFunctions<Handle> &functions) {
    return find(library, "MPI_Initialized", &functions.initialized) && find(library, "MPI_Finalized", &functions.finalized) &&
           find(library, "MPI_Init_thread", &functions.init_thread) && find(library, "MPI_Finalize", &functions.finalize) &&
           find(library, "MPI_Comm_dup", &functions.comm_dup) && find(library, "MPI_Comm_free", &functions.comm_free) &&
           find(library, "MPI_Comm_size", &functions.comm_size) && find(library, "MPI_Comm_rank", &functions.comm_rank) &&
           find(library, "MPI_Comm_set_errhandler", &functions.comm_set_errhandler) &&
           find(library, "MPI_Error_string", &functions.error_string) && find(library, "MPI_Type_contiguous", &functions.type_contiguous) &&
           find(library, "MPI_Type_commit", &functions.type_commit) && find(library, "MPI_Type_free", &functions.type_free) &&
           find(library, "MPI_Allgather", &functions.all_gather) && find(library, "MPI_Alltoall", &functions.all_to_all) &&
           find(library, "MPI_Abort", &functions.abort);
}

/// Takes the functions and handles of a library. False: some are missing.
bool take(void *library, const char *name, MpiLibrary &result) {
    void *world = dlsym(library, "ompi_mpi_comm_world");
    result.name = name;
    result.is_open_mpi = world != nullptr;
    if (!world) {
        // The numbers of MPICH's binary interface.
        result.mpich.world = 0x44000000;
        result.mpich.byte = 0x4c00010d;
        result.mpich.errors_return = 0x54000001;
        return find_functions(library, result.mpich);
    }
    result.open_mpi.world = world;
    return find(library, "ompi_mpi_byte", &result.open_mpi.byte) &&
           find(library, "ompi_mpi_errors_return", &result.open_mpi.errors_return) && find_functions(library, result.open_mpi);
}

constexpr const char *open_mpi_files[] = {"libmpi.so.40"};
constexpr const char *mpich_files[] = {"libmpich.so.12", "libmpi.so.12"};

/// Open MPI loads plug-ins that take its functions from the global names. `flags`: RTLD_NOLOAD: only if it is loaded.
bool load(const char *file, int flags, MpiLibrary &result) {
    void *library = dlopen(file, RTLD_NOW | RTLD_GLOBAL | flags);
    if (!library) return false;
    if (take(library, file, result)) return true;
    dlclose(library);
    return false;
}

bool load_any(int flags, MpiLibrary &result) {
    // A library must belong to the launcher: each process would be alone otherwise. The launcher of MPICH sets PMI_RANK.
    const bool is_mpich_first = std::getenv("PMI_RANK") && !std::getenv("OMPI_COMM_WORLD_SIZE");
    for (int pass = 0; pass < 2; ++pass) {
        if ((pass == 0) == is_mpich_first) {
            for (const char *file : mpich_files)
                if (load(file, flags, result)) return true;
        } else {
            for (const char *file : open_mpi_files)
                if (load(file, flags, result)) return true;
        }
    }
    return false;
}

struct State {
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    bool is_found = false;
    MpiLibrary library = {};
};

/// A library stays loaded, because MPI cannot be initialized twice.
State state;

bool find_library(Text &failure) {
    if (dlsym(RTLD_DEFAULT, "MPI_Init_thread") && take(RTLD_DEFAULT, "the MPI library of the process", state.library)) return true;
    if (load_any(RTLD_NOLOAD, state.library)) return true;
    const char *file = std::getenv("SCALIDE_MPI");
    if (file && *file) {
        if (load(file, 0, state.library)) return true;
        const char *reason = dlerror();
        failure << "cannot load the MPI library " << file
                << " (SCALIDE_MPI): " << (reason ? reason : "it has not all functions of MPI that Scalide calls") << '.';
        return false;
    }
    if (load_any(0, state.library)) return true;
    failure << "cannot find an MPI library: the process has loaded none, and none of libmpi.so.40, libmpich.so.12 and libmpi.so.12 can be "
               "loaded. Install Open MPI or MPICH, or set SCALIDE_MPI to the file of the library.";
    return false;
}

int32_t number_of(const char *text) {
    int32_t number = 0;
    for (; text && *text >= '0' && *text <= '9' && number < 100'000'000; ++text) number = 10 * number + (*text - '0');
    return number;
}

} // namespace

const MpiLibrary *find_mpi(Text &failure) {
    pthread_mutex_lock(&state.mutex);
    if (!state.is_found) state.is_found = find_library(failure);
    const bool is_found = state.is_found;
    pthread_mutex_unlock(&state.mutex);
    return is_found ? &state.library : nullptr;
}

int32_t launched_processes() {
    const int32_t open_mpi = number_of(std::getenv("OMPI_COMM_WORLD_SIZE"));
    return open_mpi > 0 ? open_mpi : number_of(std::getenv("PMI_SIZE"));
}

} // namespace scalide

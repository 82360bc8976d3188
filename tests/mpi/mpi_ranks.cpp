// One process of an MPI job, which mpirun starts with several. It runs a case and prints `ok` on each rank; see run_mpi.sh.
#include "runtime/group_programs.h"
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <unistd.h>

using namespace scalide::test;

namespace {

/// Ends the process with a message unless a condition holds.
void expect(bool condition, const std::string &what) {
    if (condition) return;
    std::fprintf(stderr, "wrong: %s\n", what.c_str());
    std::exit(3);
}

void expect_ok(scalide_context *context, scalide_status status) { expect(status == SCALIDE_OK, scalide_message(context)); }

/// A context with one thread.
scalide_context *create_context() {
    scalide_options options = {};
    options.struct_size = sizeof(options);
    options.threads = 1;
    scalide_context *context = nullptr;
    expect(scalide_context_create(&options, &context) == SCALIDE_OK, "there is a context");
    return context;
}

void join(scalide_context *context, const char *group, const void *communicator = nullptr) {
    expect_ok(context, scalide_join_mpi(context, group, communicator));
}

scalide_binding *bind(scalide_context *context, const scalide_program *program, const SumArrays &arrays) {
    scalide_binding *binding = nullptr;
    expect_ok(context, scalide_bind(context, program, arrays.arrays().data(), 4, &binding));
    return binding;
}

/// Sums arrays over all processes, several times and with several sizes.
void sum(scalide_context *context) {
    const int32_t rank = scalide_group_rank(context, "data"), ranks = scalide_group_ranks(context, "data");
    const SumProgram net;
    for (const int64_t n : {1, 64, 1000, 300'000}) {
        SumArrays arrays(n, 7, rank);
        scalide_binding *binding = bind(context, net.program, arrays);
        for (int run = 0; run < 3; ++run) expect_ok(context, scalide_run(binding));
        expect(arrays.wrong(ranks) == 0, "the sums are right");
        scalide_binding_destroy(binding);
    }
}

void differ(scalide_context *context) {
    const int32_t rank = scalide_group_rank(context, "data");
    const SumProgram net;
    SumArrays arrays(rank == 1 ? 5 : 9, 7, rank);
    scalide_binding *binding = bind(context, net.program, arrays);
    expect(scalide_run(binding) == SCALIDE_INVALID_ARGUMENT, "the ranks differ");
    expect(std::strstr(scalide_message(context), "rank 1 exchanges 5 f32 elements"), scalide_message(context));
    scalide_binding_destroy(binding);
}

/// Rank 1 fails, and MPI_Abort ends the others, which wait.
void fail(scalide_context *context) {
    const int32_t rank = scalide_group_rank(context, "data");
    const SumProgram net;
    SumArrays arrays(9, 7, rank);
    scalide_binding *binding = bind(context, net.program, arrays);
    kernel_error = rank == 1 ? -7 : 0;
    static_cast<void>(scalide_run(binding));
    std::printf("wrong: process %d still runs\n", rank);
}

/// The application initializes MPI before. It has no header, as the runtime.
void initialize() {
    void *library = dlopen(std::getenv("SCALIDE_MPI"), RTLD_NOW | RTLD_GLOBAL);
    expect(library, "the library is there");
    const auto init = reinterpret_cast<int (*)(int *, char ***)>(dlsym(library, "MPI_Init"));
    expect(init(nullptr, nullptr) == 0, "MPI begins");
}

void finalize() {
    void *library = dlopen(std::getenv("SCALIDE_MPI"), RTLD_NOW | RTLD_GLOBAL);
    const auto finalize = reinterpret_cast<int (*)()>(dlsym(library, "MPI_Finalize"));
    expect(finalize() == 0, "MPI ends");
}

/// Two groups: all processes, and the processes with an even or an odd number. `Handle`: void * for Open MPI, int for MPICH.
template<typename Handle>
void split(Handle world) {
    void *library = dlopen(std::getenv("SCALIDE_MPI"), RTLD_NOW | RTLD_GLOBAL);
    const auto comm_rank = reinterpret_cast<int (*)(Handle, int *)>(dlsym(library, "MPI_Comm_rank"));
    const auto comm_split = reinterpret_cast<int (*)(Handle, int, int, Handle *)>(dlsym(library, "MPI_Comm_split"));
    int number = 0;
    Handle half;
    expect(comm_rank(world, &number) == 0 && comm_split(world, number % 2, number, &half) == 0, "the processes are divided");
    scalide_context *context = create_context();
    join(context, "data", &half);
    join(context, "world", &world);
    expect(scalide_group_rank(context, "data") == number / 2, "the rank is of the half");
    expect(scalide_group_rank(context, "world") == number, "the rank is of all");
    sum(context);
    scalide_context_destroy(context);
}

} // namespace

int main(int, char **arguments) {
    const std::string name = arguments[1];
    const bool is_split = name == "split", is_of_application = name == "application" || is_split;
    if (is_of_application) initialize();
    if (is_split) {
        void *world = dlsym(RTLD_DEFAULT, "ompi_mpi_comm_world");
        world ? split<void *>(world) : split<int>(0x44000000);
    } else {
        scalide_context *context = create_context();
        join(context, "data");
        expect(scalide_group_ranks(context, "data") == std::atoi(arguments[2]), "all processes are ranks");
        if (name == "leave" && scalide_group_rank(context, "data") == 1) std::exit(5); // without the end of MPI
        if (name == "differ") {
            differ(context);
        } else if (name == "fail") {
            fail(context);
        } else {
            sum(context);
        }
        scalide_context_destroy(context);
    }
    if (is_of_application) finalize();
    std::printf("ok\n");
    return 0;
}

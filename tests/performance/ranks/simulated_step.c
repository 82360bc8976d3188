// simulated_step EXCHANGE COLLECT SMALL_COUNT SMALL SECONDS: the messages of one data-parallel training step, for SimGrid's SMPI. It calls
// the MPI functions of runtime/src/groups/mpi.cpp with the same sizes. EXCHANGE, COLLECT and SMALL are bytes to each rank, multiples of 64.
// SECONDS is the time of computing. Prints the seconds of the step. The runtime counts in units of 64 bytes, but SMPI would copy the
// elements of such a type.
#include <mpi.h>
#include <smpi/smpi.h>
#include <stdio.h>
#include <stdlib.h>

static const double speed = 1e9; // of a host of the platform, in FLOP/s

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    if (argc != 6) MPI_Abort(MPI_COMM_WORLD, 1);
    const size_t exchange = strtoull(argv[1], NULL, 10), collect = strtoull(argv[2], NULL, 10);
    const int small_count = atoi(argv[3]);
    const size_t small = strtoull(argv[4], NULL, 10);
    const double seconds = atof(argv[5]);
    int ranks, rank;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const size_t most = exchange > collect ? exchange : collect;
    char *send = SMPI_SHARED_MALLOC(most * (size_t)ranks), *receive = SMPI_SHARED_MALLOC(most * (size_t)ranks);

    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    for (int i = 0; i < small_count; ++i) { // the scales of the operands, between the kernels
        smpi_execute_flops(seconds * speed / small_count);
        MPI_Allgather(send, (int)small, MPI_BYTE, receive, (int)small, MPI_BYTE, MPI_COMM_WORLD);
    }
    if (small_count == 0) smpi_execute_flops(seconds * speed);
    MPI_Alltoall(send, (int)exchange, MPI_BYTE, receive, (int)exchange, MPI_BYTE, MPI_COMM_WORLD);
    MPI_Allgather(send, (int)collect, MPI_BYTE, receive, (int)collect, MPI_BYTE, MPI_COMM_WORLD);
    const double own = MPI_Wtime() - begin;
    double longest = 0;
    MPI_Reduce(&own, &longest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("seconds %.9f\n", longest);

    SMPI_SHARED_FREE(send);
    SMPI_SHARED_FREE(receive);
    MPI_Finalize();
    return 0;
}

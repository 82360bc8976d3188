// run_ranks HOW RANKS LIBRARY.so NAME ROUNDS RUNS [RIVAL_ELEMENTS]: runs a generated program on ranks and prints one JSON line of rank 0:
// the milliseconds of a run in each round of RUNS runs, the messages of one run, and the kernels. HOW is threads, mpi (RANKS processes that
// mpirun has started), alone (a group with one rank) or none (a program without groups). With RIVAL_ELEMENTS, rounds of MPI_Allreduce of so
// many f32 elements alternate with the rounds of the program.
#include "../bound_program.h"
#include "counted_transport.h"
#include "groups/group.h"
#include "groups/mpi_library.h"
#include <dlfcn.h>
#include <memory>
#include <thread>

namespace {

using namespace scalide;
using namespace scalide::measuring;

/// MPI_Allreduce of f32 elements by the MPI library that the runtime has loaded.
class Rival {
public:
    explicit Rival(size_t elements) : send_(elements, 1.0f), receive_(elements) {
        char words[256];
        Text failure(words, sizeof words);
        const MpiLibrary *library = find_mpi(failure);
        if (!library) fail(words);
        is_open_mpi_ = library->is_open_mpi;
        void *loaded = dlopen(library->name, RTLD_NOW | RTLD_NOLOAD);
        function_ = dlsym(loaded, "MPI_Allreduce");
        world_ = library->open_mpi.world, type_ = dlsym(loaded, "ompi_mpi_float"), sum_ = dlsym(loaded, "ompi_mpi_op_sum");
        if (!function_) fail("no MPI_Allreduce");
    }
    void run() {
        const int count = static_cast<int>(send_.size());
        if (is_open_mpi_) {
            using Function = int (*)(const void *, void *, int, void *, void *, void *);
            reinterpret_cast<Function>(function_)(send_.data(), receive_.data(), count, type_, sum_, world_);
            return;
        }
        using Function = int (*)(const void *, void *, int, int, int, int);
        constexpr int world = 0x44000000, f32 = 0x4c00040a, sum = 0x58000003; // MPICH's binary interface
        reinterpret_cast<Function>(function_)(send_.data(), receive_.data(), count, f32, sum, world);
    }
    /// The sum of the ones that the ranks send.
    float sum() const { return receive_.back(); }

private:
    std::vector<float> send_, receive_;
    bool is_open_mpi_;
    void *function_, *world_, *type_, *sum_;
};

struct Options {
    std::string how;
    int ranks;
    const char *library, *name;
    int rounds, runs;
    size_t rival_elements;
};

/// One rank, bound to random arrays.
struct BoundRank {
    BoundRank(const Options &options, int number, scalide_thread_group *threads) : options(options), number(number) {
        scalide_options of_context{};
        of_context.struct_size = sizeof of_context;
        of_context.threads = 1;
        if (scalide_context_create(&of_context, &context) != SCALIDE_OK) fail("no context");
        if (options.how != "none") join(threads);
        scalide_library *library = nullptr;
        if (scalide_load(context, options.library, &library) != SCALIDE_OK) fail(scalide_message(context));
        program = scalide_library_program(context, library, options.name);
        if (!program) fail(scalide_message(context));
        arguments = make_arguments(program, {{"data", options.ranks}});
        if (scalide_bind(context, program, arguments.arrays.data(), arguments.arrays.size(), &binding) != SCALIDE_OK)
            fail(scalide_message(context));
    }
    ~BoundRank() {
        scalide_binding_destroy(binding);
        scalide_context_destroy(context);
    }

    void join(scalide_thread_group *threads) {
        char words[512] = "";
        Text failure(words, sizeof words);
        scalide_transport inner = lone_transport();
        scalide_status status = SCALIDE_OK;
        if (options.how == "threads") status = open_threads(*threads, number, &inner, failure);
        if (options.how == "mpi") status = open_mpi(nullptr, &inner, failure);
        if (status != SCALIDE_OK) fail(words);
        number = inner.rank;
        if (inner.ranks != options.ranks) fail("the launcher has started another number of processes");
        transport = std::make_unique<CountedTransport>(inner);
        const scalide_transport table = transport->table();
        if (scalide_join(context, "data", &table) != SCALIDE_OK) fail(scalide_message(context));
    }
    void run() const {
        if (scalide_run(binding) != SCALIDE_OK) fail(scalide_message(context));
    }

    const Options &options;
    int number;
    std::unique_ptr<CountedTransport> transport;
    scalide_context *context = nullptr;
    const scalide_program *program = nullptr;
    Arguments arguments;
    scalide_binding *binding = nullptr;
};

template<typename Run>
double milliseconds_of(int runs, Run run) {
    const Clock::time_point start = Clock::now();
    for (int i = 0; i < runs; i++) run();
    return milliseconds_since(start) / runs;
}

void print_times(const char *name, const std::vector<double> &times) {
    std::printf(", \"%s\": [", name);
    for (size_t i = 0; i < times.size(); i++) std::printf("%s%.6f", i ? ", " : "", times[i]);
    std::printf("]");
}

void print_kernels(const BoundRank &rank) {
    std::vector<scalide_step_profile> steps(scalide_step_count(rank.binding));
    if (scalide_profile(rank.binding, 1, steps.data(), steps.size()) != SCALIDE_OK) fail(scalide_message(rank.context));
    std::printf(", \"kernels\": [");
    for (size_t i = 0; i < steps.size(); i++) std::printf("%s\"%s\"", i ? ", " : "", steps[i].name);
    std::printf("]");
}

void measure(const Options &options, int number, scalide_thread_group *threads) {
    BoundRank rank(options, number, threads);
    rank.run(); // compares the ranks
    if (rank.transport) rank.transport->calls.clear();
    rank.run();
    const std::vector<CountedTransport::Call> calls = rank.transport ? rank.transport->calls : std::vector<CountedTransport::Call>();
    const uint64_t sent = rank.transport ? rank.transport->sent() : 0;
    std::unique_ptr<Rival> rival(options.rival_elements ? new Rival(options.rival_elements) : nullptr);
    if (rival) {
        rival->run();
        if (rival->sum() != static_cast<float>(options.ranks)) fail("MPI_Allreduce has another sum");
    }
    std::vector<double> times, rivals;
    for (int round = 0; round < options.rounds; round++) {
        times.push_back(milliseconds_of(options.runs, [&] { rank.run(); }));
        if (rival) rivals.push_back(milliseconds_of(options.runs, [&] { rival->run(); }));
    }
    if (rank.number != 0) return;
    std::printf("{\"sent\": %llu, \"calls\": [", static_cast<unsigned long long>(sent));
    for (size_t i = 0; i < calls.size(); i++)
        std::printf("%s[\"%s\", %llu]", i ? ", " : "", calls[i].is_collect ? "collect" : "exchange",
                    static_cast<unsigned long long>(calls[i].bytes));
    std::printf("]");
    print_times("ms", times);
    print_times("rival_ms", rivals);
    if (options.ranks == 1) print_kernels(rank);
    std::printf("}\n");
}

} // namespace

int main(int argc, char **argv) {
    if (argc < 7) fail("usage: run_ranks HOW RANKS LIBRARY.so NAME ROUNDS RUNS [RIVAL_ELEMENTS]");
    const Options options = {argv[1],
                             std::atoi(argv[2]),
                             argv[3],
                             argv[4],
                             std::atoi(argv[5]),
                             std::atoi(argv[6]),
                             argc > 7 ? std::strtoull(argv[7], nullptr, 10) : 0};
    if (options.how != "threads") {
        measure(options, 0, nullptr);
        return 0;
    }
    scalide_thread_group *group = nullptr;
    char message[256] = "";
    if (scalide_thread_group_create(options.ranks, 0, &group, message, sizeof message) != SCALIDE_OK) fail(message);
    std::vector<std::thread> threads;
    for (int rank = 0; rank < options.ranks; rank++) threads.emplace_back([&, rank] { measure(options, rank, group); });
    for (std::thread &thread : threads) thread.join();
    scalide_thread_group_destroy(group);
}

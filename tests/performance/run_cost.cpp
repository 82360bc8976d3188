// run_cost LIBRARY.so NAME [symbol=value ...]: what of a run is protection. Prints the least time of a run in one thread, and that of the
// FloatEnvironment around it (runtime/src/float_environment.h), which is all that a run does besides its kernels because a host may be
// hostile: what arrays and plans promise is checked at bind.
#include "bound_program.h"
#include "float_environment.h"
#include "measuring.h"
#include <cstdio>

namespace {

using namespace scalide::measuring;

/// Of one call, in ns: the least of the batches of at least 20 us that half a second has room for.
template<typename Call>
double nanoseconds(const Call &call) {
    double least = 1e30;
    const Clock::time_point begin = Clock::now();
    for (int64_t count = 1; milliseconds_since(begin) < 500;) {
        const Clock::time_point start = Clock::now();
        for (int64_t i = 0; i < count; i++) call();
        const double taken = milliseconds_since(start) * 1e6;
        least = std::min(least, taken / static_cast<double>(count));
        if (taken < 20000) count *= 2;
    }
    return least;
}

} // namespace

int main(int argc, char **argv) {
    if (argc < 3) fail("usage: run_cost LIBRARY.so NAME [symbol=value ...]");
    const BoundProgram bound(argv[1], argv[2], 1, symbols_of(argc, argv, 3));
    const double run = nanoseconds([&] { scalide_run(bound.binding); });
    const double environment = nanoseconds([] {
        const scalide::FloatEnvironment environment;
        asm volatile("" ::: "memory");
    });
    std::printf("%-24s run %10.1f ns   float environment %5.1f ns   %5.2f %%\n", argv[2], run, environment, 100 * environment / run);
}

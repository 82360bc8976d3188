// run_cost LIBRARY.so NAME [symbol=value ...]: what of a run is protection. Prints the least time of a run in one thread, and what one more
// FloatEnvironment (runtime/src/base/float_environment.h) around it adds: that is all that a run does besides its kernels because a host
// may be hostile. What arrays and plans promise is checked at bind.
#include "base/float_environment.h"
#include "bound_program.h"
#include <cstdio>

namespace {

using namespace scalide::measuring;

/// Of one call, in ns: the least of the batches of at least 20 us that a fifth of a second has room for.
template<typename Call>
double nanoseconds(const Call &call) {
    double least = 1e30;
    const Clock::time_point begin = Clock::now();
    for (int64_t count = 1; milliseconds_since(begin) < 200;) {
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
    double plain = 1e30, protected_twice = 1e30;
    for (int round = 0; round < 5; round++) {
        plain = std::min(plain, nanoseconds([&] { scalide_run(bound.binding); }));
        protected_twice = std::min(protected_twice, nanoseconds([&] {
                                       const scalide::FloatEnvironment environment;
                                       scalide_run(bound.binding);
                                   }));
    }
    std::printf("%-24s run %10.1f ns   protection %5.1f ns   %5.2f %%\n", argv[2], plain, protected_twice - plain,
                100 * (protected_twice / plain - 1));
}

// further_binding LIBRARY.so NAME [symbol=value ...]: what a further binding of a program costs (scalide_bind_like). Prints the bytes that
// the first binding and a further one allocate, without the arena, the bytes of the arena, and the least time of each call.
#include "bound_program.h"
#include <algorithm>
#include <atomic>
#include <cstdio>

namespace {

using namespace scalide::measuring;

std::atomic<size_t> bytes_in_use{0};

void *allocate(void *, size_t bytes, size_t alignment) {
    char *block = static_cast<char *>(std::aligned_alloc(alignment, (bytes + 2 * alignment - 1) / alignment * alignment));
    if (!block) return nullptr;
    *reinterpret_cast<size_t *>(block) = bytes;
    bytes_in_use += bytes;
    return block + alignment;
}

void release(void *, void *memory) {
    char *block = static_cast<char *>(memory) - 64;
    bytes_in_use -= *reinterpret_cast<size_t *>(block);
    std::free(block);
}

scalide_context *create_context() {
    scalide_options options{};
    options.struct_size = sizeof options;
    options.threads = 1;
    options.allocator = {allocate, release, nullptr};
    scalide_context *context = nullptr;
    if (scalide_context_create(&options, &context) != SCALIDE_OK) fail("no context");
    return context;
}

struct Cost {
    size_t bytes;
    double microseconds;
};

/// Measures a call that makes a binding. The binding is destroyed after each call but the last one.
template<typename Make>
Cost measure(scalide_context *context, const Make &make, scalide_binding **binding) {
    Cost cost = {0, 1e30};
    for (int i = 0; i < 200; i++) {
        scalide_binding_destroy(*binding);
        const size_t before = bytes_in_use;
        const Clock::time_point start = Clock::now();
        if (make(binding) != SCALIDE_OK) fail(scalide_message(context));
        cost.microseconds = std::min(cost.microseconds, milliseconds_since(start) * 1e3);
        cost.bytes = bytes_in_use - before - scalide_arena_bytes(*binding);
    }
    return cost;
}

void print(const char *what, const Cost &cost) { std::printf("%-16s %9zu bytes %9.1f us\n", what, cost.bytes, cost.microseconds); }

} // namespace

int main(int argc, char **argv) {
    if (argc < 3) fail("usage: further_binding LIBRARY.so NAME [symbol=value ...]");
    const BoundProgram bound(argv[1], argv[2], 1, symbols_of(argc, argv, 3));
    scalide_context *context = create_context(), *other = create_context();
    const scalide_array *arrays = bound.arguments.arrays.data();
    const size_t count = bound.arguments.arrays.size();
    scalide_constants *constants = nullptr;
    if (scalide_prepare(context, bound.program, arrays, count, &constants) != SCALIDE_OK) fail(scalide_message(context));
    scalide_binding *first = nullptr, *further = nullptr;
    const auto bind = [&](scalide_binding **made) {
        return scalide_bind_constants(context, bound.program, arrays, count, constants, made);
    };
    const auto bind_like = [&](scalide_binding **made) { return scalide_bind_like(other, first, arrays, count, made); };
    const Cost of_first = measure(context, bind, &first), of_further = measure(other, bind_like, &further);
    std::printf("%s: %zu steps, %zu arguments, arena %zu bytes, constants %zu bytes\n", argv[2], scalide_step_count(first), count,
                scalide_arena_bytes(first), scalide_constants_bytes(constants));
    print("first binding", of_first);
    print("further binding", of_further);
}

#pragma once
#include "measuring.h"
#include <cstdio>
#include <cstdlib>
#include <map>
#include <scalide/plan.h>
#include <string>
#include <vector>

// A generated program bound to arrays of small random numbers, for programs that time it.
namespace scalide::measuring {

using Symbols = std::map<std::string, int64_t>;

[[noreturn]] inline void fail(const char *message) {
    std::fprintf(stderr, "%s\n", message);
    std::exit(1);
}

/// Parses `symbol=value` arguments from argv[first] on.
inline Symbols symbols_of(int argc, char **argv, int first) {
    Symbols symbols;
    for (int i = first; i < argc; i++) {
        const std::string text = argv[i];
        symbols[text.substr(0, text.find('='))] = std::atoll(text.c_str() + text.find('=') + 1);
    }
    return symbols;
}

inline int64_t evaluate(const scalide_extent &extent, const scalide_program *program, const Symbols &symbols) {
    int64_t sum = 0;
    for (int32_t i = 0; i < extent.count; i++) {
        int64_t product = extent.terms[i].coefficient;
        for (const int32_t symbol : extent.terms[i].symbol) product *= symbol < 0 ? 1 : symbols.at(program->symbols[symbol].name);
        sum += product;
    }
    return sum;
}

struct Arguments {
    std::vector<scalide_array> arrays;
    std::vector<void *> memory;
    std::vector<float> scales;
    size_t bytes = 0; ///< bytes read and written; an inout array counts twice
};

inline Arguments make_arguments(const scalide_program *program, const Symbols &symbols) {
    std::mt19937 random(1);
    Arguments arguments;
    arguments.scales.assign(static_cast<size_t>(program->argument_count), 1.0f);
    for (int32_t i = 0; i < program->argument_count; i++) {
        const scalide_buffer &buffer = program->buffers[program->arguments[i].data_buffer];
        int64_t shape[SCALIDE_MAX_RANK];
        size_t count = 1;
        for (int32_t axis = 0; axis < buffer.rank; axis++)
            count *= static_cast<size_t>(shape[axis] = evaluate(buffer.shape[axis], program, symbols));
        const size_t exact = count * scalide_dtype_size(buffer.dtype), bytes = (exact + 63) / 64 * 64;
        arguments.bytes += exact * (program->arguments[i].role == SCALIDE_INOUT ? 2 : 1);
        void *data = std::aligned_alloc(64, bytes);
        std::memset(data, 0, bytes);
        fill(data, buffer.dtype, count, random);
        float *scale = program->arguments[i].scale_buffer >= 0 ? &arguments.scales[static_cast<size_t>(i)] : nullptr;
        arguments.arrays.push_back(scalide_dense_array(data, scale, buffer.dtype, buffer.rank, shape));
    }
    return arguments;
}

/// Lives as long as the process.
struct BoundProgram {
    BoundProgram(const char *file, const char *name, int threads, const Symbols &symbols) {
        scalide_options options{};
        options.struct_size = sizeof options;
        options.threads = threads;
        if (scalide_context_create(&options, &context) != SCALIDE_OK) fail("no context");
        scalide_library *library = nullptr;
        if (scalide_load(context, file, &library) != SCALIDE_OK) fail(scalide_message(context));
        program = scalide_library_program(context, library, name);
        if (!program) fail(scalide_message(context));
        arguments = make_arguments(program, symbols);
        if (scalide_bind(context, program, arguments.arrays.data(), arguments.arrays.size(), &binding) != SCALIDE_OK)
            fail(scalide_message(context));
    }

    scalide_context *context = nullptr;
    const scalide_program *program = nullptr;
    Arguments arguments;
    scalide_binding *binding = nullptr;
};

} // namespace scalide::measuring

#include "context/context.h"
#include "base/float_environment.h"
#include "context/entry.h"
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <new>

using namespace scalide;

namespace scalide {

Text start_message(scalide_context *context) { return Text(context->message, sizeof(context->message), Text::Use::message); }

scalide_status report(scalide_context *context, scalide_status status) {
    if (status != SCALIDE_OK && context->log) context->log(context->log_user, context->message);
    return status;
}

void retain_context(scalide_context *context) { context->holders.fetch_add(1); }

namespace {

void close_groups(scalide_context &context) {
    while (Group *group = context.groups) {
        context.groups = group->next;
        group->transport.close(group->transport.self);
        release(context.allocator, group);
    }
}

} // namespace

void release_context(scalide_context *context) {
    if (context->holders.fetch_sub(1) > 1) return;
    const FloatEnvironment environment;
    close_groups(*context);
    if (context->device) context->device->driver->close(*context->device);
    context->pool.stop();
    for (int32_t i = 0; i < context->thread_count; ++i) context->workers[i].scratch.destroy();
    const scalide_allocator allocator = context->allocator;
    release(allocator, context->workers);
    release(allocator, context);
}

void fail_run(scalide_context *context, scalide_status status, const char *what) {
    int none = SCALIDE_OK;
    if (context->run_status.compare_exchange_strong(none, status)) Text(context->failure, sizeof(context->failure)) << what;
}

bool reserve_scratch(scalide_context *context, uint64_t bytes) {
    bool good = true;
    for (int i = 0; good && i < context->thread_count; ++i) good = context->workers[i].scratch.reserve(bytes);
    return good;
}

void level_scratch(scalide_context *context) {
    int made = 0;
    uint64_t peak = 0;
    for (int i = 0; i < context->thread_count; ++i) {
        const Scratch &scratch = context->workers[i].scratch;
        made += scratch.chunks_made();
        if (scratch.peak() > peak) peak = scratch.peak();
    }
    if (made == context->chunks_made) return;
    reserve_scratch(context, peak); // if this fails, the next run grows the scratch memory as it needs it
    context->chunks_made = 0;
    for (int i = 0; i < context->thread_count; ++i) context->chunks_made += context->workers[i].scratch.chunks_made();
}

} // namespace scalide

namespace {

constexpr uint64_t default_scratch_bytes = uint64_t(1) << 20;
constexpr int32_t max_threads = 1024;

/// No header had a smaller structure. So `message` and `message_size` can be read, whatever struct_size says.
constexpr size_t least_options_size = offsetof(scalide_options, message_size) + sizeof(size_t);
/// No structure is larger.
constexpr size_t most_options_size = 4096;

/// Returns true if all fields that this library does not know are 0.
bool has_known_fields(const scalide_options &given) {
    const auto *bytes = reinterpret_cast<const unsigned char *>(&given);
    return std::all_of(bytes + std::min(sizeof(given), given.struct_size), bytes + given.struct_size,
                       [](unsigned char byte) { return byte == 0; });
}

bool check_size(const scalide_options &given) {
    const size_t size = given.struct_size;
    const bool is_a_size = size >= least_options_size && size <= most_options_size;
    if (is_a_size && has_known_fields(given)) return true;
    // A number that is too large is the content of uninitialised memory, as `message` would be.
    Text failure(size > most_options_size ? nullptr : given.message, given.message_size, Text::Use::message);
    if (is_a_size) {
        failure
            << "struct_size of scalide_options is " << uint64_t(size) << ", but this library knows " << uint64_t(sizeof(given))
            << " bytes, and a field behind them is not 0. Link a newer library, or compile the application with the header of this one.";
    } else {
        failure << "struct_size must be sizeof(scalide_options), " << uint64_t(sizeof(given)) << ", got " << uint64_t(size)
                << ". Fill the structure with zeros and set options.struct_size = sizeof(scalide_options).";
    }
    return false;
}

// Fields that the caller's version of the structure does not have stay 0, which selects the default.
scalide_options complete_options(const scalide_options *given) {
    scalide_options options = {};
    if (given) std::memcpy(&options, given, std::min(given->struct_size, sizeof(options)));
    if (options.device != SCALIDE_CPU) options.threads = 1;
    if (options.threads == 0) options.threads = available_cpus();
    if (options.scratch_bytes == 0) options.scratch_bytes = default_scratch_bytes;
    return options;
}

bool check_options(const scalide_options &options, Text &failure) {
    if (options.threads < 0 || options.threads > max_threads) {
        failure << "threads must be in [0, " << max_threads << "], got " << options.threads << ". 0 means all CPUs.";
    } else if (options.scratch_bytes > Scratch::most_bytes) {
        failure << "scratch_bytes must be at most " << Scratch::most_bytes << ", got " << options.scratch_bytes
                << ". Pass 0 for 1 MiB per thread.";
    } else if (options.device < 0 || options.device >= SCALIDE_DEVICE_COUNT) {
        failure << "device must be SCALIDE_CPU, SCALIDE_CUDA or SCALIDE_OPENCL, got " << options.device << '.';
    } else if (options.device_index < 0) {
        failure << "device_index must be at least 0, got " << options.device_index << '.';
    } else if (!options.allocator.allocate != !options.allocator.release) {
        failure << "allocator needs both functions, allocate and release, got one of them.";
    } else {
        return true;
    }
    return false;
}

scalide_status open_device(scalide_context *context, const scalide_options &options, Text &failure) {
    switch (options.device) {
    case SCALIDE_CUDA: return open_cuda(options, &context->device, failure);
    case SCALIDE_OPENCL: return open_opencl(options, &context->device, failure);
    default: return SCALIDE_OK;
    }
}

scalide_status start_context(scalide_context *context, const scalide_options &options) {
    context->workers = static_cast<Worker *>(allocate(context->allocator, sizeof(Worker) * static_cast<uint64_t>(options.threads)));
    if (!context->workers) return SCALIDE_OUT_OF_MEMORY;
    context->thread_count = options.threads;
    for (int32_t i = 0; i < options.threads; ++i) {
        new (&context->workers[i])
            Worker{{kernel_context_mark, &kernel_services}, context, Scratch(context->allocator), nullptr, Nesting::outside, {}, {}};
    }
    if (!reserve_scratch(context, options.scratch_bytes)) return SCALIDE_OUT_OF_MEMORY;
    context->chunks_made = options.threads;
    const int own_threads = context->parallel_for.run ? 1 : options.threads;
    return context->pool.start(own_threads, participate, context, context->allocator) ? SCALIDE_OK : SCALIDE_THREAD_FAILED;
}

} // namespace

scalide_status scalide_context_create(const scalide_options *given, scalide_context **result) {
    const FloatEnvironment environment;
    if (result) *result = nullptr;
    if (given && !check_size(*given)) return SCALIDE_INVALID_ARGUMENT;
    const scalide_options options = complete_options(given);
    Text failure(options.message, options.message_size, Text::Use::message);
    if (!result) {
        failure << "scalide_context_create: context must not be NULL.";
        return SCALIDE_INVALID_ARGUMENT;
    }
    if (!check_options(options, failure)) return SCALIDE_INVALID_ARGUMENT;
    void *memory = allocate(options.allocator, sizeof(scalide_context));
    if (!memory) return SCALIDE_OUT_OF_MEMORY;
    auto *context = new (memory) scalide_context{};
    context->allocator = options.allocator;
    context->parallel_for = options.parallel_for;
    context->log = options.log;
    context->log_user = options.log_user;
    context->require_libraries = options.require_libraries != 0;
    scalide_status status = start_context(context, options);
    if (status == SCALIDE_OK) status = open_device(context, options, failure);
    if (status == SCALIDE_OK) {
        *result = context;
    } else {
        if (failure.size() == 0) failure << scalide_status_string(status) << '.';
        scalide_context_destroy(context);
    }
    return status;
}

void scalide_context_destroy(scalide_context *context) {
    if (context) release_context(context);
}

int32_t scalide_context_device(const scalide_context *context) {
    if (!context) return -1;
    return context->device ? context->device->driver->kind : SCALIDE_CPU;
}

const char *scalide_context_device_name(const scalide_context *context) {
    if (!context) return nullptr;
    return context->device ? context->device->name : scalide_device_name(SCALIDE_CPU);
}

const char *scalide_message(const scalide_context *context) {
    if (!context) return "there is no context";
    return is_used_elsewhere(*context) ? scalide_status_string(SCALIDE_BUSY) : context->message;
}

int32_t scalide_thread_count(const scalide_context *context) {
    if (!context) return 0;
    return context->parallel_for.run || context->pool.has_threads() ? context->thread_count : 1;
}

#include "loaded_program.h"
#include "device_copies.h"
#include <algorithm>
#include <cstdlib>
#include <map>
#include <unistd.h>
#include <utility>

namespace scalide::python {

namespace {

// The number of bindings to keep. Each has an arena. A training has few shapes: the batch, the last partial batch and the evaluation batch.
constexpr size_t kept_bindings = 16;

/// All contexts of the process, and the groups that each of them joins.
struct Contexts {
    std::mutex mutex;
    std::map<std::pair<int, int32_t>, std::weak_ptr<SharedContext>> known; ///< by threads and device
    std::map<std::string, Join> groups;                                    ///< by name
    std::shared_ptr<SharedContext> asked;                                  ///< lives as long as the process, so that its ranks do not leave
} contexts;

void join(const SharedContext &context, const std::string &group, Join join) {
    if (join(context.handle, group.c_str()) != SCALIDE_OK) throw Failure(SCALIDE_INVALID_ARGUMENT, scalide_message(context.handle));
}

/// Needs the mutex.
std::shared_ptr<SharedContext> find_context(int threads, int32_t device) {
    std::weak_ptr<SharedContext> &known = contexts.known[{threads, device}];
    std::shared_ptr<SharedContext> context = known.lock();
    if (context && context->process == getpid()) return context;
    context = std::make_shared<SharedContext>(threads, device);
    for (const auto &[group, how] : contexts.groups) join(*context, group, how);
    known = context;
    return context;
}

std::shared_ptr<SharedContext> shared_context(int threads, int32_t device) {
    const std::lock_guard lock(contexts.mutex);
    return find_context(threads, device);
}

/// Marks a context during a run.
class Running {
public:
    Running(SharedContext &context, const scalide_program &program) : context_(context) {
        if (context.is_running) {
            throw Failure(SCALIDE_BUSY, std::string(program.name) + ": a handler of a signal cannot run a program while a run of the same "
                                                                    "thread is in a loop. Let the handler set a flag.");
        }
        context.is_running = true;
    }
    Running(const Running &) = delete;
    Running &operator=(const Running &) = delete;
    ~Running() { context_.is_running = false; }

private:
    SharedContext &context_;
};

} // namespace

Rank join_group(const std::string &group, Join how) {
    const std::lock_guard lock(contexts.mutex);
    contexts.asked = find_context(0, SCALIDE_CPU);
    if (contexts.groups.emplace(group, how).second) {
        try {
            for (const auto &[key, known] : contexts.known)
                if (const std::shared_ptr<SharedContext> context = known.lock(); context && context->process == getpid()) {
                    const auto user = context->lock();
                    join(*context, group, how);
                }
        } catch (...) {
            contexts.groups.erase(group);
            throw;
        }
    }
    return {scalide_group_rank(contexts.asked->handle, group.c_str()), scalide_group_ranks(contexts.asked->handle, group.c_str())};
}

size_t data_bytes(const scalide_array &array) {
    size_t bytes = scalide_dtype_size(array.dtype);
    for (int32_t i = 0; i < std::min(array.rank, SCALIDE_MAX_RANK); ++i) bytes *= static_cast<size_t>(array.extent[i]);
    return bytes;
}

Memory allocate_data(const scalide_array &array) {
    const size_t bytes = (data_bytes(array) + alignment) / alignment * alignment;
    Memory memory(std::aligned_alloc(alignment, bytes), std::free);
    if (!memory) throw Failure(SCALIDE_OUT_OF_MEMORY, "out of memory: cannot allocate a result of " + std::to_string(bytes) + " bytes.");
    return memory;
}

SharedContext::SharedContext(int threads, int32_t device) : process(getpid()) {
    char message[1024] = "";
    scalide_options options = {};
    options.struct_size = sizeof(options);
    options.threads = threads;
    options.device = device;
    options.message = message;
    options.message_size = sizeof(message);
    const scalide_status status = scalide_context_create(&options, &handle);
    if (status == SCALIDE_INVALID_ARGUMENT) {
        throw Failure(status, "Library.threads: must be in [0, 1024], got " + std::to_string(threads) + ". 0 means all CPUs.");
    }
    if (status != SCALIDE_OK) throw Failure(status, message);
}

/// A binding for one combination of shapes, with its most recent arrays. On a device they are copies.
struct LoadedProgram::Binding {
    std::vector<int64_t> shapes; ///< ranks and extents of all arguments except outputs
    std::vector<scalide_array> outputs;
    DeviceCopies copies;
    std::unique_ptr<scalide_binding, void (*)(scalide_binding *)> handle; ///< destroyed before the arrays that it uses
    /// NULL: the program has no statistics
    std::unique_ptr<scalide_statistics, void (*)(scalide_statistics *)> statistics = {nullptr, scalide_statistics_destroy};
};

LoadedProgram::LoadedProgram(const std::string &path, const std::string &name, int threads)
    : context_(shared_context(threads, SCALIDE_CPU)), library_(nullptr, scalide_library_close) {
    load(path, name);
    if (judge() == SCALIDE_WRONG_DEVICE) context_ = shared_context(threads, scalide_program_device(program_));
    const scalide_status status = judge();
    if (status != SCALIDE_INVALID_ARGUMENT) check(status);
    arguments_.resize(scalide_argument_count(program_));
    for (size_t i = 0; i < arguments_.size(); ++i) {
        scalide_describe_argument(program_, i, &arguments_[i]);
        has_constants_ |= arguments_[i].role == SCALIDE_CONSTANT;
    }
    statistics_.resize(scalide_statistics_count(program_));
    for (scalide_statistic &row : statistics_) row.step = -1;
}

LoadedProgram::~LoadedProgram() = default;

void LoadedProgram::load(const std::string &path, const std::string &name) {
    const auto lock = context_->lock();
    scalide_library *library = nullptr;
    check(scalide_load(context_->handle, path.c_str(), &library));
    library_.reset(library);
    program_ = scalide_library_program(context_->handle, library, name.c_str());
    if (!program_) throw Failure(SCALIDE_INVALID_ARGUMENT, path + ": " + scalide_message(context_->handle));
}

// A bind without arrays checks only the program. It reads the version and the device of the program first.
scalide_status LoadedProgram::judge() const {
    const auto lock = context_->lock();
    scalide_binding *binding = nullptr;
    const scalide_status status = scalide_bind(context_->handle, program_, nullptr, 0, &binding);
    scalide_binding_destroy(binding);
    return status;
}

void LoadedProgram::check(scalide_status status) const {
    if (status != SCALIDE_OK) throw Failure(status, scalide_message(context_->handle));
}

std::vector<int64_t> LoadedProgram::shapes_of(const std::vector<scalide_array> &arrays) const {
    std::vector<int64_t> shapes;
    for (size_t i = 0; i < arguments_.size(); ++i) {
        if (arguments_[i].role == SCALIDE_OUTPUT) continue;
        shapes.push_back(arrays[i].rank);
        shapes.insert(shapes.end(), arrays[i].extent, arrays[i].extent + std::min(arrays[i].rank, SCALIDE_MAX_RANK));
    }
    return shapes;
}

void LoadedProgram::place_outputs(std::vector<scalide_array> &arrays, const std::vector<scalide_array> &shaped,
                                  const Allocate &allocate) const {
    for (size_t i = 0; i < arguments_.size(); ++i) {
        if (arguments_[i].role != SCALIDE_OUTPUT || arrays[i].data) continue;
        float *scale = arrays[i].scale;
        arrays[i] = shaped[i];
        arrays[i].scale = scale;
        if (allocate) allocate(i, arrays[i]); // XLA passes no memory for arrays without elements; they need none
    }
}

LoadedProgram::Binding &LoadedProgram::bind(std::vector<scalide_array> &arrays, const Constants *constants, const Allocate &allocate) {
    std::vector<int64_t> shapes = shapes_of(arrays);
    const auto known = std::find_if(bindings_.begin(), bindings_.end(), [&](const Binding &binding) { return binding.shapes == shapes; });
    if (known != bindings_.end()) {
        bindings_.splice(bindings_.begin(), bindings_, known);
        place_outputs(arrays, known->outputs, allocate);
        const std::vector<scalide_array> &seen = known->copies.seen(arrays);
        check(scalide_set_arguments(known->handle.get(), seen.data(), seen.size()));
        if (constants) check(scalide_set_constants(known->handle.get(), constants->handle));
        if (constants && known->statistics) check(scalide_statistics_set_constants(known->statistics.get(), constants->collecting));
        return *known;
    }
    std::vector<scalide_array> shaped = arrays;
    check(scalide_shape_outputs(context_->handle, program_, shaped.data(), shaped.size()));
    place_outputs(arrays, shaped, allocate);
    DeviceCopies copies(context_->handle, arrays);
    const std::vector<scalide_array> &seen = copies.seen(arrays);
    scalide_binding *binding = nullptr;
    check(constants ? scalide_bind_constants(context_->handle, program_, seen.data(), seen.size(), constants->handle, &binding)
                    : scalide_bind(context_->handle, program_, seen.data(), seen.size(), &binding));
    bindings_.push_front({std::move(shapes), std::move(shaped), std::move(copies), {binding, scalide_binding_destroy}});
    if (!statistics_.empty()) add_statistics(bindings_.front(), seen, constants);
    take_notices_of(binding);
    if (bindings_.size() > kept_bindings) bindings_.pop_back();
    return bindings_.front();
}

void LoadedProgram::add_statistics(Binding &binding, const std::vector<scalide_array> &seen, const Constants *constants) {
    scalide_statistics *statistics = nullptr;
    const scalide_status status =
        scalide_statistics_create(binding.handle.get(), seen.data(), seen.size(), constants ? constants->collecting : nullptr, &statistics);
    binding.statistics.reset(statistics);
    if (status != SCALIDE_OK) bindings_.pop_front();
    check(status);
}

void LoadedProgram::take_notices_of(const scalide_binding *binding) {
    for (size_t step = 0; step < scalide_step_count(binding); ++step) {
        scalide_step_info info = {};
        check(scalide_describe_step(binding, step, &info));
        if (info.notice) notices_.emplace_back(info.notice);
    }
}

std::vector<std::string> LoadedProgram::take_notices() {
    const auto lock = context_->lock();
    return std::exchange(notices_, {});
}

std::shared_ptr<Constants> LoadedProgram::prepare(const std::vector<scalide_array> &arrays) const {
    check_process();
    const auto lock = context_->lock();
    return prepare_locked(arrays);
}

std::shared_ptr<Constants> LoadedProgram::prepare_locked(const std::vector<scalide_array> &arrays) const {
    std::vector<scalide_array> constants(arrays.size()), shapes(arrays.size());
    for (size_t i = 0; i < arrays.size(); ++i) {
        if (arguments_[i].role != SCALIDE_CONSTANT) continue;
        constants[i] = shapes[i] = arrays[i];
        shapes[i].data = nullptr;
        shapes[i].scale = nullptr;
    }
    DeviceCopies copies(context_->handle, constants);
    for (size_t i = 0; i < arrays.size(); ++i) copies.copy_in(i, constants[i]);
    const std::vector<scalide_array> &seen = copies.seen(constants);
    scalide_constants *prepared = nullptr;
    check(scalide_prepare(context_->handle, program_, seen.data(), seen.size(), &prepared));
    const auto made = std::make_shared<Constants>(context_, prepared, std::move(shapes));
    if (!statistics_.empty()) check(scalide_statistics_prepare(context_->handle, program_, seen.data(), seen.size(), &made->collecting));
    return made;
}

void LoadedProgram::check_process() const {
    if (context_->process == getpid()) return;
    throw Failure(SCALIDE_INVALID_ARGUMENT, std::string(program_->name) + ": a forked process cannot run this library. "
                                                                          "Load the library in the new process.");
}

void LoadedProgram::shape_outputs(std::vector<scalide_array> &arrays) const {
    const auto lock = context_->lock();
    check(scalide_shape_outputs(context_->handle, program_, arrays.data(), arrays.size()));
}

void LoadedProgram::describe_state(std::vector<scalide_array> &arrays) const {
    const auto lock = context_->lock();
    check(scalide_initial_state(context_->handle, program_, arrays.data(), arrays.size()));
}

NonFinite LoadedProgram::run_checked(std::vector<scalide_array> &arrays, const Constants *constants, const Allocate &allocate, Poll poll) {
    NonFinite found;
    const auto runner = [&](Binding &binding) {
        scalide_non_finite first = {};
        const scalide_status status = scalide_run_checked(binding.handle.get(), &first);
        found = {first.buffer, first.kernel, first.step, first.loops ? first.loops : ""};
        return status;
    };
    run_by(runner, arrays, constants, allocate, poll);
    return found;
}

void LoadedProgram::run(std::vector<scalide_array> &arrays, const Constants *constants, const Allocate &allocate, Poll poll) {
    run_by([this](Binding &binding) { return run_collecting(binding); }, arrays, constants, allocate, poll);
}

void LoadedProgram::run_traced(std::vector<scalide_array> &arrays, const Constants *constants, const Allocate &allocate, Poll poll,
                               scalide_trace trace, void *user) {
    run_by([&](Binding &binding) { return scalide_run_traced(binding.handle.get(), trace, user); }, arrays, constants, allocate, poll);
}

void LoadedProgram::run_apart(std::vector<scalide_array> &arrays, const Constants *constants, const Allocate &allocate, Poll poll) {
    run_by([](Binding &binding) { return scalide_run(binding.handle.get()); }, arrays, constants, allocate, poll);
}

scalide_status LoadedProgram::run_collecting(Binding &binding) {
    if (!binding.statistics) return scalide_run(binding.handle.get());
    const int64_t step = runs_++;
    scalide_status status = scalide_run_collecting(binding.statistics.get(), step);
    if (status != SCALIDE_OK || scalide_statistics_step(binding.statistics.get()) != step) return status;
    std::vector<scalide_statistic> rows(statistics_.size());
    status = scalide_read_statistics(binding.statistics.get(), rows.data(), rows.size());
    for (size_t i = 0; i < rows.size() && status == SCALIDE_OK; ++i)
        if (rows[i].step == step) statistics_[i] = rows[i];
    if (status == SCALIDE_OK) collected_ = step;
    return status;
}

int64_t LoadedProgram::statistics_step() const {
    const auto lock = context_->lock();
    return collected_;
}

std::vector<scalide_statistic> LoadedProgram::statistics() const {
    const auto lock = context_->lock();
    return statistics_;
}

void LoadedProgram::run_by(const std::function<scalide_status(Binding &)> &runner, std::vector<scalide_array> &arrays,
                           const Constants *constants, const Allocate &allocate, Poll poll) {
    check_process();
    std::shared_ptr<Constants> own; // destroyed after the lock, because its destructor locks, too
    const auto lock = context_->lock();
    const Running running(*context_, *program_);
    if (has_constants_ && !constants) {
        own = prepare_locked(arrays);
        constants = own.get();
    }
    for (size_t i = 0; i < arrays.size(); ++i) {
        if (arguments_[i].role == SCALIDE_CONSTANT) arrays[i] = constants->shapes[i];
    }
    Binding &binding = bind(arrays, constants, allocate);
    for (size_t i = 0; i < arrays.size(); ++i) {
        if (arguments_[i].role != SCALIDE_OUTPUT) binding.copies.copy_in(i, arrays[i]);
    }
    scalide_set_poll(context_->handle, poll, nullptr); // every run of the shared context sets its own
    const scalide_status status = runner(binding);
    if (status != SCALIDE_OK) bindings_.pop_front(); // its status is sticky
    check(status);
    for (size_t i = 0; i < arrays.size(); ++i) {
        if (is_written(arguments_[i])) binding.copies.copy_out(i, arrays[i]);
    }
}

} // namespace scalide::python

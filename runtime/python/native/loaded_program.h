#pragma once
#include "scalide/groups.h"
#include "scalide/plan.h"
#include "scalide/statistics.h"
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

/// The part of the Python module that does not use Python. Threads of XLA also call it.
namespace scalide::python {

/// An error of the runtime, with its message.
class Failure : public std::runtime_error {
public:
    Failure(scalide_status status, const std::string &message) : std::runtime_error(message), status(status) {}
    scalide_status status;
};

/// Returns the size of a dense array in bytes.
size_t data_bytes(const scalide_array &array);
/// The alignment of inouts in bytes.
constexpr size_t alignment = 64;
using Memory = std::unique_ptr<void, void (*)(void *)>;
/// Allocates aligned memory for an array. Free it with std::free. Throws Failure.
Memory allocate_data(const scalide_array &array);

/// A context that all programs with the same device and number of threads share. Use it under lock().
struct SharedContext {
    SharedContext(int threads, int32_t device);
    SharedContext(const SharedContext &) = delete;
    SharedContext &operator=(const SharedContext &) = delete;
    ~SharedContext() { scalide_context_destroy(handle); }

    /// Waits until no other thread uses the context. The thread that runs a program may lock it again, in Python's handlers of signals.
    std::unique_lock<std::recursive_mutex> lock();

    scalide_context *handle = nullptr;
    bool is_running = false;
    int process; ///< the process that created it: threads do not survive a fork

private:
    std::recursive_mutex mutex_;
};

/// scalide_join_mpi or scalide_join_alone, as a function of a context and a group.
using Join = scalide_status (*)(scalide_context *context, const char *group);
/// The number of a rank, and the number of ranks.
struct Rank {
    int32_t rank, ranks;
};
/// All contexts of this process, also later ones, join the group, once. Throws Failure.
Rank join_group(const std::string &group, Join how);

/// Returns true if a run writes the argument: an output, inout or state.
inline bool is_written(const scalide_argument_info &info) { return info.role != SCALIDE_INPUT && info.role != SCALIDE_CONSTANT; }

/// What a program computed once from its constants. Calls share it.
struct Constants : std::enable_shared_from_this<Constants> {
    Constants(std::shared_ptr<SharedContext> context, scalide_constants *handle, std::vector<scalide_array> shapes)
        : context(std::move(context)), handle(handle), shapes(std::move(shapes)) {}
    Constants(const Constants &) = delete;
    Constants &operator=(const Constants &) = delete;
    ~Constants() {
        const auto lock = context->lock();
        scalide_constants_destroy(handle);
        scalide_constants_destroy(collecting);
    }

    const std::shared_ptr<SharedContext> context; ///< owns the device memory of the handle
    scalide_constants *const handle;
    scalide_constants *collecting = nullptr; ///< of the form with statistics; NULL: there is none
    const std::vector<scalide_array> shapes; ///< by argument: the shape of a constant, without memory
};

/// A function that may stop a run in a loop, by another result than 0.
using Poll = int (*)(void *);

/// The first result of a run that is not finite.
struct NonFinite {
    const char *buffer = nullptr, *kernel = nullptr; ///< they live as long as the program. NULL: all results are finite
    size_t step = 0;
    std::string loops; ///< "" outside of loops
};

/// A program from a shared library, with its most recent bindings by shape. Arrays are always in host memory. Any thread may call any
/// function.
class LoadedProgram {
public:
    /// Loads a program. `threads` = 0 means all CPUs that this process may use. A program for a device uses the first device of its kind.
    /// Throws Failure.
    LoadedProgram(const std::string &path, const std::string &name, int threads);
    ~LoadedProgram();
    LoadedProgram(const LoadedProgram &) = delete;
    LoadedProgram &operator=(const LoadedProgram &) = delete;

    const scalide_program &program() const { return *program_; }
    const std::vector<scalide_argument_info> &arguments() const { return arguments_; }

    /// A function that sets the memory of an output. Its shape is set already.
    using Allocate = std::function<void(size_t argument, scalide_array &array)>;
    /// Runs the program. `arrays` has one array for each argument. An output without data gets its shape, and its memory from `allocate`.
    /// If `constants` is NULL, the call prepares the constants in `arrays` for itself. Otherwise it needs only their shapes.
    /// `poll` may stop loops (scalide_set_poll).
    /// A program with statistics collects them in the runs that its policy names.
    void run(std::vector<scalide_array> &arrays, const Constants *constants, const Allocate &allocate, Poll poll = nullptr);
    /// The same for a run that is no step of the caller: it collects nothing, and does not count.
    void run_apart(std::vector<scalide_array> &arrays, const Constants *constants, const Allocate &allocate, Poll poll);
    /// Returns the newest statistics of each tensor (scalide_describe_statistic). `step` counts the calls of run().
    std::vector<scalide_statistic> statistics() const;
    /// Returns the newest step that collected, or -1.
    int64_t statistics_step() const;
    /// Runs the program and returns the first result that is not finite.
    NonFinite run_checked(std::vector<scalide_array> &arrays, const Constants *constants, const Allocate &allocate, Poll poll);
    /// Runs the program and calls `trace` with `user` for each array that a step computes, as scalide_run_traced does.
    void run_traced(std::vector<scalide_array> &arrays, const Constants *constants, const Allocate &allocate, Poll poll,
                    scalide_trace trace, void *user);
    /// Computes everything that depends only on the constants in `arrays`, which has one array for each argument.
    std::shared_ptr<Constants> prepare(const std::vector<scalide_array> &arrays) const;

    /// Returns what the last bindings say about steps that a library does not compute as asked (scalide_step_info), and forgets it.
    std::vector<std::string> take_notices();

    /// Sets the shapes of the outputs.
    void shape_outputs(std::vector<scalide_array> &arrays) const;
    /// Sets the dtypes and shapes of the policy's state. It writes initial values to arrays with data.
    void describe_state(std::vector<scalide_array> &arrays) const;

private:
    struct Binding;

    /// Runs the program and collects statistics if they are due.
    scalide_status run_collecting(Binding &binding);
    void run_by(const std::function<scalide_status(Binding &)> &runner, std::vector<scalide_array> &arrays, const Constants *constants,
                const Allocate &allocate, Poll poll);
    /// Throws if a fork has stopped the threads of the context.
    void check_process() const;
    void check(scalide_status status) const;
    void load(const std::string &path, const std::string &name);
    scalide_status judge() const;
    std::vector<int64_t> shapes_of(const std::vector<scalide_array> &arrays) const;
    void place_outputs(std::vector<scalide_array> &arrays, const std::vector<scalide_array> &shaped, const Allocate &allocate) const;
    void take_notices_of(const scalide_binding *binding);
    Binding &bind(std::vector<scalide_array> &arrays, const Constants *constants, const Allocate &allocate);
    void add_statistics(Binding &binding, const std::vector<scalide_array> &seen, const Constants *constants);
    /// As `prepare`, for a caller that holds the mutex of the context.
    std::shared_ptr<Constants> prepare_locked(const std::vector<scalide_array> &arrays) const;

    std::shared_ptr<SharedContext> context_;
    std::unique_ptr<scalide_library, void (*)(scalide_library *)> library_;
    const scalide_program *program_ = nullptr;
    std::vector<scalide_argument_info> arguments_;
    std::vector<std::string> notices_;
    bool has_constants_ = false;
    int64_t runs_ = 0, collected_ = -1;         ///< calls of run(), and the newest one that collected
    std::vector<scalide_statistic> statistics_; ///< by tensor
    std::list<Binding> bindings_;               ///< the most recent first
};

} // namespace scalide::python

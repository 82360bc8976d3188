#pragma once
#include "scalide/plan.h"
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

/// The part of the Python module that knows no Python: XLA's threads call it too.
namespace scalide::python {

/// What the runtime refused, in its words.
class Failure : public std::runtime_error {
public:
    Failure(scalide_status status, const std::string &message) : std::runtime_error(message), status(status) {}
    scalide_status status;
};

/// What a dense array of this dtype, rank and extents takes.
size_t data_bytes(const scalide_array &array);
/// Inouts must be aligned so.
constexpr size_t alignment = 64;
using Memory = std::unique_ptr<void, void (*)(void *)>;
/// Aligned memory for it, to be freed by std::free. Throws Failure.
Memory allocate_data(const scalide_array &array);

/// A runtime context that all programs of one device and thread count share; whoever uses it holds the mutex.
struct SharedContext {
    SharedContext(int threads, int32_t device);
    SharedContext(const SharedContext &) = delete;
    SharedContext &operator=(const SharedContext &) = delete;
    ~SharedContext() { scalide_context_destroy(handle); }

    scalide_context *handle = nullptr;
    std::mutex mutex;
    int process; ///< threads do not survive a fork
};

/// A program of a shared library and its newest bindings, by shape. Arrays are the host's, whatever the program runs on. All functions may
/// be called from any thread.
class LoadedProgram {
public:
    /// `threads`: 0 = the CPUs that this process may use. A program for a device gets a context of the first one of its kind. Throws
    /// Failure.
    LoadedProgram(const std::string &path, const std::string &name, int threads);
    ~LoadedProgram();
    LoadedProgram(const LoadedProgram &) = delete;
    LoadedProgram &operator=(const LoadedProgram &) = delete;

    const scalide_program &program() const { return *program_; }
    const std::vector<scalide_argument_info> &arguments() const { return arguments_; }

    /// Gives the memory of an output whose shape is filled in.
    using Allocate = std::function<void(size_t argument, scalide_array &array)>;
    /// One run on these arrays (one for each argument). Outputs without data get their shape and, by `allocate`, their memory.
    void run(std::vector<scalide_array> &arrays, const Allocate &allocate) { run_by(scalide_run, arrays, allocate); }
    /// The same, and the first result that is not finite; its names live as long as the program.
    scalide_non_finite run_checked(std::vector<scalide_array> &arrays, const Allocate &allocate);

    /// Fills in the shapes of the outputs.
    void shape_outputs(std::vector<scalide_array> &arrays) const;
    /// Fills in dtypes and shapes of the policy's state; arrays without data are not written.
    void describe_state(std::vector<scalide_array> &arrays) const;

private:
    struct Binding;

    void run_by(const std::function<scalide_status(scalide_binding *)> &runner, std::vector<scalide_array> &arrays,
                const Allocate &allocate);
    void check(scalide_status status) const;
    void load(const std::string &path, const std::string &name);
    scalide_status judge() const;
    std::vector<int64_t> shapes_of(const std::vector<scalide_array> &arrays) const;
    void place_outputs(std::vector<scalide_array> &arrays, const std::vector<scalide_array> &shaped, const Allocate &allocate) const;
    Binding &bind(std::vector<scalide_array> &arrays, const Allocate &allocate);

    std::shared_ptr<SharedContext> context_;
    std::unique_ptr<scalide_library, void (*)(scalide_library *)> library_;
    const scalide_program *program_ = nullptr;
    std::vector<scalide_argument_info> arguments_;
    std::list<Binding> bindings_; ///< the newest first
};

} // namespace scalide::python

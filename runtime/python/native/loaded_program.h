#pragma once
#include "scalide/plan.h"
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

/// A context that all programs with the same device and number of threads share. Hold the mutex while you use it.
struct SharedContext {
    SharedContext(int threads, int32_t device);
    SharedContext(const SharedContext &) = delete;
    SharedContext &operator=(const SharedContext &) = delete;
    ~SharedContext() { scalide_context_destroy(handle); }

    scalide_context *handle = nullptr;
    std::mutex mutex;
    int process; ///< the process that created it: threads do not survive a fork
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
    void run(std::vector<scalide_array> &arrays, const Allocate &allocate) { run_by(scalide_run, arrays, allocate); }
    /// Runs the program and returns the first result that is not finite. Its names live as long as the program.
    scalide_non_finite run_checked(std::vector<scalide_array> &arrays, const Allocate &allocate);

    /// Sets the shapes of the outputs.
    void shape_outputs(std::vector<scalide_array> &arrays) const;
    /// Sets the dtypes and shapes of the policy's state. It writes initial values to arrays with data.
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
    /// Computes what depends on the constants, which may differ from those of the last call.
    void prepare(Binding &binding, const std::vector<scalide_array> &arrays) const;

    std::shared_ptr<SharedContext> context_;
    std::unique_ptr<scalide_library, void (*)(scalide_library *)> library_;
    const scalide_program *program_ = nullptr;
    std::vector<scalide_argument_info> arguments_; ///< constants have the role of inputs
    bool has_constants_ = false;
    std::list<Binding> bindings_; ///< the most recent first
};

} // namespace scalide::python

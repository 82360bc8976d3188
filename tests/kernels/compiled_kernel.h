#pragma once
#include "kernels/guarded_memory.h"
#include "lower/kernel.h"
#include <filesystem>

namespace scalide {

/// Storage words of one array, dense and row-major.
using Words = std::vector<uint8_t>;

/// The host, without what Halide's own runtime would do: no checks, no runtime of its own.
Halide::Target kernel_target();

/// Whether every access is looked at (kernels/checked_accesses.h), which takes much time.
enum class Accesses { trusted, checked };

/// A kernel program compiled as the tool compiles it and loaded into this process.
class CompiledKernel {
public:
    /// Throws on any error of lowering, Halide or the linker.
    explicit CompiledKernel(const Program &program, const Halide::Target &target = kernel_target(), Accesses accesses = Accesses::trusted);
    ~CompiledKernel();
    CompiledKernel(const CompiledKernel &) = delete;

    /// Runs on the argument arrays, in argument order; inout arguments are overwritten. Returns the results that are no inout argument,
    /// in result order (empty Words for the others). All arrays are guarded, so that an access beside them faults; throws when one was
    /// written that is no result, and of a checked access.
    std::vector<Words> run(std::vector<Words> &arguments, const Extent::Bindings &symbols, Guard guard = Guard::behind) const;
    /// One call on arrays that stand for themselves; for timing.
    void call(const std::vector<void *> &operands, const Extent::Bindings &symbols) const;

    /// The symbols that the object needs from outside.
    std::vector<std::string> undefined_symbols() const;
    const LoweredKernel &lowered() const { return kernel_; }

private:
    LoweredKernel kernel_;
    std::filesystem::path folder_;
    void *library_ = nullptr;
    int (*entry_)(void **) = nullptr;
};

} // namespace scalide

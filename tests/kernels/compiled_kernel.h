#pragma once
#include "kernels/guarded_memory.h"
#include "lower/lower.h"
#include <filesystem>

namespace scalide {

/// Storage words of one array, dense and row-major.
using Words = std::vector<uint8_t>;

/// The CPU of this machine, without the checks and without the runtime of Halide. If the environment variable SCALIDE_TEST_TILES is set,
/// the same CPU with tiles of AMX, for which it asks the system for permission.
Halide::Target kernel_target();

/// A target of x86-64 with the instructions of a CPU with AMX.
Halide::Target with_tiles(Halide::Target target);

/// Returns the assembly of a kernel for a target.
std::string assembly_of(const Program &program, const Halide::Target &target);
/// Returns how often a text contains a word.
size_t count_words(const std::string &text, const std::string &word);

/// Whether every access is checked (kernels/checked_accesses.h), which is slow.
enum class Accesses { trusted, checked };

/// A kernel program, compiled as the tool compiles it and loaded into this process.
class CompiledKernel {
public:
    /// Throws on any error of the lowering, Halide or the linker.
    explicit CompiledKernel(const Program &program, const Halide::Target &target = kernel_target(), Accesses accesses = Accesses::trusted);
    ~CompiledKernel();
    CompiledKernel(const CompiledKernel &) = delete;

    /// Runs the kernel on the argument arrays, in argument order; inout arguments are overwritten. Returns the results that are no inout
    /// arguments, in result order (empty Words for the others). All arrays are guarded, so an access outside them faults. Throws if the
    /// kernel wrote an array that is no result, or if a checked access is wrong. A kernel that reads strides runs again on arrays with
    /// gaps between their rows, and must give the same bits.
    std::vector<Words> run(std::vector<Words> &arguments, const Extent::Bindings &symbols, Guard guard = Guard::behind) const;
    /// Calls the kernel once on arrays without guards, for timing.
    void call(const std::vector<void *> &operands, const Extent::Bindings &symbols) const { call(operands, symbols, false); }

    /// Returns the undefined symbols of the object.
    std::vector<std::string> undefined_symbols() const;
    const LoweredKernel &lowered() const { return kernel_; }

private:
    void call(const std::vector<void *> &operands, const Extent::Bindings &symbols, bool strided) const;
    std::vector<Words> run_once(std::vector<Words> &arguments, const Extent::Bindings &symbols, Guard guard, bool strided) const;

    LoweredKernel kernel_;
    bool is_checked_ = false;
    std::filesystem::path folder_;
    void *library_ = nullptr;
    int (*entry_)(void **) = nullptr;
};

} // namespace scalide

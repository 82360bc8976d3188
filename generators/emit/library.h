#pragma once
#include "emit/built_form.h"
#include "emit/card_use.h"
#include "transforms/pipeline.h"
#include <filesystem>

namespace scalide {

struct BuildReport;

/// A kernel whose object file is ready.
struct ReadyKernel {
    std::string name;
    int steps = 0;          ///< number of steps of its program that run it
    Origin first;           ///< the first result of the first of these steps
    bool is_cached = false; ///< it was not compiled in this build
};

struct BuildOptions {
    std::string name;                    ///< name of the library and its C function; empty: the name of the program
    bool is_collection = false;          ///< a single program keeps its own name, too
    std::string target = "host";         ///< one, or several CPUs (split_targets)
    std::vector<std::string> cuda_cards; ///< for CUDA: compute capabilities ("90"); empty: all of device_code.h
    Policy policy;
    std::filesystem::path output_folder = ".";
    std::filesystem::path cache_folder;    ///< empty: ObjectCache::default_folder()
    std::filesystem::path include_folder;  ///< folder with scalide/plan.h
    std::filesystem::path runtime_library; ///< libscalide_runtime.a, which is linked into a shared library
    int jobs = 0;                          ///< number of child processes; 0: one for each core
    int child_seconds = 600;               ///< time limit for compiling one kernel or plan; 0: no limit
    bool shared_library = false;           ///< also build lib<name>.so
    bool require_libraries = false;        ///< a library must compute each matmul of a GPU program; otherwise, an error at build or bind
    bool traceable = false;                ///< store each rounded operand and each scale, so that a trace can show it; slower on CPUs
    bool checks_types = false;             ///< check each node against its rule after each pass; for work on passes
    std::vector<StatisticsRow> statistics = {}; ///< further rows, after the rows of the policy
    Unroll unroll = Unroll::short_ones;         ///< CompileOptions::unroll
    std::function<void(const std::string &pass, const Program &)> after_pass;
    /// Called for each kernel that is ready: how many are ready, and how many there are.
    std::function<void(size_t done, size_t total, const ReadyKernel &)> progress;
    /// Called before a kernel is compiled a second time, alone. The text tells how its first compiler ended: by a signal or without memory.
    std::function<void(const std::string &)> retry;
    /// Called when the new files are complete and the files of an older build still exist. If it throws, the old files stay. Afterwards
    /// files are only moved.
    std::function<void(const BuildReport &)> before_publish;
};

struct BuildReport {
    std::vector<std::filesystem::path> files;
    size_t kernels = 0, steps = 0, compiled = 0; ///< distinct kernels; kernel calls in programs; kernels that were not in the cache
    double seconds = 0;
    BuiltPrograms programs;
    std::vector<std::string> left_to_kernels;                ///< a sentence for each matmul with scales that no library accepts
    std::vector<CopiedArgument> copied;                      ///< of all programs
    ProductFormats products;                                 ///< of all programs
    std::vector<std::vector<CollectedStatistic>> statistics; ///< by statistics program
    /// For CUDA, by C name: registers and memory of each launch on each architecture
    std::map<std::string, std::vector<CardUse>> uses;
    /// Returns the main program of the first program, for the first target.
    const BuiltForm &main() const { return programs.at(0).at(0).main; }
};

/// One program of a library.
struct LibraryProgram {
    Program program;
    std::string doc;                   ///< comment of its function in the header; may be empty
    std::optional<Policy> policy = {}; ///< the policy of this program, instead of the policy of the build
    /// Rows of statistics: it is the statistics program of the program before it. build_library() makes such programs.
    std::vector<StatisticsRow> statistics = {};
};

/// Compiles programs into `lib<name>.a`, `<name>.h`, `<name>.plan.c` and `<name>.json` (and `lib<name>.so`) in the output folder. The name
/// in the options is the name of the library. A single program gets it too, unless the library is a collection. Each program has a function
/// `<program>_program`. The files are complete or absent. Throws UserError (program, policy, target, disk, C compiler) or InternalError (a
/// kernel that does not compile, with the compiler's output and the kernel's text).
BuildReport build_library(const std::vector<LibraryProgram> &programs, const Rulebook &rulebook, const BuildOptions &options);

/// Returns the facts that passes need about the target (the first of a list), its GPUs (see cards_of) and what is stored for traces.
TargetFacts target_facts(const BuildOptions &options);

} // namespace scalide

#pragma once
#include "emit/card_use.h"
#include "emit/plan.h"
#include "transforms/numerics/numerics_report.h"
#include "transforms/pipeline.h"
#include <filesystem>

namespace scalide {

struct BuildReport;

struct BuildOptions {
    std::string name;           ///< of the library and its C function; empty: the program's
    bool is_collection = false; ///< programs keep their names, also one that is alone
    std::string target = "host";
    std::vector<std::string> cuda_cards; ///< for CUDA, by compute capability ("90"); empty: all of device_code.h
    Policy policy;
    std::filesystem::path output_folder = ".";
    std::filesystem::path cache_folder;    ///< empty: ObjectCache::default_folder()
    std::filesystem::path include_folder;  ///< that has scalide/plan.h
    std::filesystem::path runtime_library; ///< libscalide_runtime.a: a shared library holds it
    int jobs = 0;                          ///< child processes; 0: one a core
    int child_seconds = 600;               ///< what a compiler gets for a kernel or a plan; 0: no limit
    bool shared_library = false;           ///< lib<name>.so beside lib<name>.a
    bool traceable = false;                ///< each rounded operand and each scale is stored, so that a trace shows it; slower on CPUs
    bool checks_types = false;             ///< after each pass every node is held to its rule: for who changes passes
    std::function<void(const std::string &pass, const Program &)> after_pass;
    /// Called as kernels become ready: how many of how many, the newest, and whether it came from the cache.
    std::function<void(size_t done, size_t total, const std::string &kernel, bool cached)> progress;
    /// Called with what became of a kernel's compiler that a signal ended, or that had no memory, before it runs once more, alone.
    std::function<void(const std::string &)> retry;
    /// Called when all is made and the files of an older build are still there: whoever throws here leaves them. What comes behind only
    /// moves files.
    std::function<void(const BuildReport &)> before_publish;
};

struct BuildReport {
    std::vector<std::filesystem::path> files;
    size_t kernels = 0, steps = 0, compiled = 0; ///< distinct kernels, calls of them in programs, those not found in the cache
    double seconds = 0;
    std::vector<Plan> plans;                                 ///< each program's, then its variants for some cards
    std::vector<Program> fused;                              ///< by plan
    std::vector<std::string> left_to_kernels;                ///< products whose operands' scales no library takes, each a sentence
    ProductFormats products;                                 ///< of all programs
    std::vector<std::map<std::string, std::string>> symbols; ///< by plan: the C name of each kernel
    std::map<std::string, std::vector<CardUse>> uses;        ///< by C name, for CUDA: registers and memory of each launch and card
};

/// One program of a library.
struct LibraryProgram {
    Program program;
    std::string doc; ///< stands above its function in the header; may be empty
};

/// Compiles programs into `lib<name>.a`, `<name>.h`, `<name>.plan.c` and `<name>.json` (and `lib<name>.so`) in the output folder. The name
/// in the options is that of the library; a program that is alone in it gets it too, unless the library is a collection. Each program has
/// its function, `<program>_program`. Files appear whole or not at all. Throws UserError (program, policy, target, disk, C compiler) or
/// InternalError (a kernel that does not compile, with the compiler's words and the kernel's text).
BuildReport build_library(const std::vector<LibraryProgram> &programs, const Rulebook &rulebook, const BuildOptions &options);

/// What passes need to know of the target of a build, its cards (see cards_of) and what it keeps for traces.
TargetFacts target_facts(const BuildOptions &options);

} // namespace scalide

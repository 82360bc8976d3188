#pragma once
#include "emit/library.h"
#include "support/folder.h"
#include "tool/loaded_program.h"

namespace scalide {

/// Folders of the build that this test belongs to. Tests include this header instead of that of the tool, which takes ten seconds.
struct BuildFolders {
    std::filesystem::path rules, include;
};
BuildFolders build_folders();

/// A program that is compiled into its own shared library and loaded. Throws UserError or InternalError if it does not compile. For CUDA it
/// is compiled for all GPU architectures, or for the one in the environment variable SCALIDE_CARD_ARCH ("90").
class CompiledProgram {
public:
    CompiledProgram(const Program &program, const Rulebook &rulebook, const Policy &policy, const std::string &target = "host",
                    Unroll unroll = Unroll::short_ones);
    CompiledProgram(const CompiledProgram &) = delete;

    /// The fused program, which `interpret` runs in mode `stored` for comparison. A scaled argument is two arguments here.
    const Program &fused() const { return report_.main().form.program; }
    /// Runs on arrays in the order of fused()'s arguments; returns them in the order of its results.
    std::vector<Array> run(const std::vector<Array> &inputs) const;
    /// Returns inputs as the library takes them, and what the library made as the results of fused().
    std::vector<HostArray> host_arrays(const std::vector<Array> &inputs) const;
    std::vector<Array> results(const std::vector<HostArray> &made) const;
    /// The library itself, which takes arrays as they are in memory.
    const LoadedProgram &loaded() const { return *loaded_; }
    const std::filesystem::path &library() const { return report_.files.back(); }
    const std::string &name() const { return report_.main().plan.name; }

private:
    test::Folder folder_; ///< destroyed last
    BuildReport report_;
    std::unique_ptr<LoadedProgram> loaded_;
};

} // namespace scalide

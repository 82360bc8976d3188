#pragma once
#include "emit/files.h"
#include "emit/library.h"
#include "tool/common.h"
#include "tool/loaded_program.h"

namespace scalide {

/// A program that is compiled into a temporary folder and loaded in this process.
struct CompiledProgram {
    /// `build` has policy, cache and target; `home` is the option --home.
    CompiledProgram(const Program &program, const Rulebook &rulebook, BuildOptions build, const std::string &home,
                    const Join &join = scalide_join_alone);
    /// Loads the library once more, for another rank.
    LoadedProgram load(const Join &join) const;

    const Plan &plan() const { return report.main().plan; }
    /// Returns the array of an argument from a file. State of a policy that the file does not have begins with its initial value.
    HostArray find(const std::string &name, const ArrayFile &arrays) const;

    const WorkFolder work;
    const BuildReport report;
    const LoadedProgram library;
};

} // namespace scalide

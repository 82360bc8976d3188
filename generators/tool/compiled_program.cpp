#include "tool/compiled_program.h"
#include <algorithm>

namespace scalide {

namespace {

BuildReport build_shared(const Program &program, const Rulebook &rulebook, BuildOptions build, const std::filesystem::path &folder,
                         const std::string &given_home) {
    build.output_folder = folder;
    const Home home = find_home(given_home);
    build.include_folder = home.include;
    build.runtime_library = home.runtime_library;
    build.shared_library = true;
    return build_library({{program, ""}}, rulebook, build);
}

} // namespace

CompiledProgram::CompiledProgram(const Program &program, const Rulebook &rulebook, BuildOptions build, const std::string &home,
                                 const Join &join)
    : work(std::filesystem::temp_directory_path() / "scalide-run"),
      report(build_shared(program, rulebook, std::move(build), work.path(), home)), library(load(join)) {}

LoadedProgram CompiledProgram::load(const Join &join) const { return {report.files.back(), report.main().plan.name, join}; }

HostArray CompiledProgram::find(const std::string &name, const ArrayFile &arrays) const {
    const auto argument = std::ranges::find(plan().arguments, name, &PlanArgument::name);
    if (argument->role != ArgumentRole::state) return arrays.find(name);
    return arrays.find_state(name, plan().buffers[argument->data_buffer].type, argument->initial);
}

} // namespace scalide

#include "emit/library_files.h"
#include "emit/files.h"
#include "emit/plan_text.h"
#include "emit/process.h"

namespace scalide {

namespace fs = std::filesystem;

namespace {

void run_or_throw(const std::vector<std::string> &command, const std::string &what) {
    const ChildResult result = run_command(command);
    if (result.ok) return;
    throw UserError({{},
                     "build." + what,
                     "'" + command[0] + "' must run",
                     result.reason + (result.output.empty() ? "" : ": " + result.output),
                     "Install a C compiler and binutils, or name the compiler in the variable CC"});
}

std::string c_compiler() {
    const char *compiler = std::getenv("CC");
    return compiler && *compiler ? compiler : "cc";
}

// An archive follows from the plan, the headers that it includes, the compiler and the kernels.
std::string archive_key(const std::string &plan, const BuildOptions &options, const KernelObjects &objects) {
    std::string identity = plan + c_compiler();
    for (const auto &[symbol, file] : objects.files) identity += file.filename();
    std::error_code error;
    std::vector<fs::path> headers;
    for (const fs::directory_entry &file : fs::directory_iterator(options.include_folder / "scalide", error)) {
        if (file.path().extension() == ".h") headers.push_back(file.path());
    }
    std::ranges::sort(headers);
    for (const fs::path &header : headers) identity += read_file(header);
    return hash_text(identity);
}

// The plan compiled, and put beside the kernels.
void make_archive(const fs::path &archive, const fs::path &plan, const BuildOptions &options, const KernelObjects &objects) {
    const fs::path object = fs::path(plan).replace_extension(".o");
    run_or_throw({c_compiler(), "-std=c99", "-O1", "-fPIC", "-c", plan, "-I" + options.include_folder.string(), "-o", object}, "plan");
    std::vector<std::string> command{"ar", "rcsD", archive, object};
    for (const auto &[symbol, file] : objects.files) command.push_back(file);
    run_or_throw(command, "archive");
}

void link_shared(const fs::path &library, const fs::path &archive, const BuildOptions &options) {
    run_or_throw({c_compiler(), "-shared", "-o", library, "-Wl,--whole-archive", archive, "-Wl,--no-whole-archive",
                  options.runtime_library.string(), "-lpthread"},
                 "shared library");
}

} // namespace

std::vector<fs::path> write_library(const std::vector<Plan> &plans, const std::vector<PreparedProgram> &programs,
                                    const BuildOptions &options, const KernelObjects &objects, const ObjectCache &cache) {
    std::vector<PlannedProgram> planned;
    for (size_t i = 0; i < plans.size(); i++) planned.push_back({plans[i], programs[i].fused, programs[i].symbols()});
    const std::string name = to_identifier(plans.size() == 1 ? plans[0].name : options.name), source = plan_source(planned);
    WorkFolder work(options.output_folder);
    std::vector<std::string> outputs{name + ".h", name + ".plan.c", name + ".json", "lib" + name + ".a"};
    write_file(work / outputs[0], plan_header(name, plans));
    write_file(work / outputs[1], source);
    write_file(work / outputs[2], plan_manifest(name, planned));
    const fs::path archive = work / outputs[3];
    const std::string cached = archive_key(source, options, objects) + ".a";
    if (const fs::path file = cache.find(cached); !file.empty()) {
        write_file(archive, read_file(file));
    } else {
        make_archive(archive, work / outputs[1], options, objects);
        cache.insert_content(cached, read_file(archive));
    }
    if (options.shared_library) {
        outputs.push_back("lib" + name + ".so");
        link_shared(work / outputs.back(), archive, options);
    }
    std::vector<fs::path> files;
    for (const std::string &output : outputs) {
        files.push_back(options.output_folder / output);
        move_file(work / output, files.back());
    }
    return files;
}

} // namespace scalide

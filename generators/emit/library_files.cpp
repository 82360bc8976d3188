#include "emit/library_files.h"
#include "emit/c_text.h"
#include "emit/files.h"
#include "emit/kernel_target.h"
#include "emit/plan_text.h"
#include "emit/process.h"
#include <algorithm>
#include <sstream>

namespace scalide {

namespace fs = std::filesystem;

namespace {

void run_or_throw(const std::vector<std::string> &command, const std::string &what, const BuildOptions &options) {
    const ChildResult result = run_command(command, {1, options.child_seconds});
    if (result.ok) return;
    const std::string install =
        "Install a C compiler, the headers of the C library and binutils, or name the compiler in the environment variable CC";
    throw UserError(failed_action("make the " + what + " with '" + command[0] + "'", result.reason,
                                  result.way_out.empty() ? install : result.way_out, result.output));
}

std::string named_compiler() {
    const char *compiler = std::getenv("CC");
    return compiler && *compiler ? compiler : "cc";
}

/// Splits CC as `make` does, into a program and perhaps options. A path with spaces is one word if such a file exists. Appends `more`.
std::vector<std::string> c_compiler(const std::vector<std::string> &more) {
    std::error_code error;
    const std::string named = named_compiler();
    std::vector<std::string> command;
    std::istringstream text(named);
    for (std::string word; text >> word;) command.push_back(word);
    if (command.empty() || fs::is_regular_file(named, error)) command = {named};
    command.insert(command.end(), more.begin(), more.end());
    return command;
}

struct TripleRow {
    Halide::Target::Arch arch;
    int bits;
    const char *word;
};

struct SystemRow {
    Halide::Target::OS os;
    const char *word;
};

// The start of the target triple that a C compiler prints, and its remainder.
constexpr TripleRow triples[] = {
    {Halide::Target::X86, 64, "x86_64"}, {Halide::Target::X86, 32, "i686"},      {Halide::Target::ARM, 64, "aarch64"},
    {Halide::Target::ARM, 32, "arm"},    {Halide::Target::RISCV, 64, "riscv64"}, {Halide::Target::RISCV, 32, "riscv32"},
};
constexpr SystemRow systems[] = {{Halide::Target::Linux, "linux"},
                                 {Halide::Target::Android, "android"},
                                 {Halide::Target::Windows, "mingw"},
                                 {Halide::Target::OSX, "darwin"}};

// Returns a text such as "aarch64-linux"; empty if no C compiler for the target is known.
std::string triple_of(const Halide::Target &target) {
    const auto machine =
        std::ranges::find_if(triples, [&](const TripleRow &row) { return row.arch == target.arch && row.bits == target.bits; });
    const auto system = std::ranges::find(systems, target.os, &SystemRow::os);
    return machine == std::end(triples) || system == std::end(systems) ? "" : std::string(machine->word) + "-" + system->word;
}

bool fits(const std::string &triple, const std::string &printed) {
    const size_t dash = triple.find('-');
    return !triple.empty() && printed.starts_with(triple.substr(0, dash)) && printed.find(triple.substr(dash)) != std::string::npos;
}

std::string machine_text(const Halide::Target &target) { return Halide::Target(target.os, target.arch, target.bits).to_string(); }

// An archive depends on the plan, the headers that the plan includes, the compiler and the kernels.
std::string archive_key(const std::string &plan, const BuildOptions &options, const KernelObjects &objects) {
    std::string identity = plan + named_compiler();
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

// Compiles the plan and adds the kernels.
void make_archive(const fs::path &archive, const fs::path &plan, const BuildOptions &options, const KernelObjects &objects) {
    const fs::path object = fs::path(plan).replace_extension(".o");
    run_or_throw(c_compiler({"-std=c99", "-O1", "-fPIC", "-c", plan, "-I" + options.include_folder.string(), "-o", object}), "plan",
                 options);
    std::vector<std::string> command{"ar", "rcsD", archive, object};
    for (const auto &[symbol, file] : objects.files) command.push_back(file);
    run_or_throw(command, "archive", options);
}

void link_shared(const fs::path &library, const fs::path &archive, const BuildOptions &options) {
    run_or_throw(c_compiler({"-shared", "-o", library, "-Wl,--whole-archive", archive, "-Wl,--no-whole-archive",
                             options.runtime_library.string(), "-lpthread", "-lm"}),
                 "shared library", options);
}

} // namespace

void check_toolchain(const Halide::Target &target, bool shared_library) {
    const std::string wanted = machine_text(target), host = machine_text(Halide::get_host_target());
    if (wanted == host) return;
    if (shared_library) {
        throw UserError(
            statement({}, "cannot build a shared library for '" + wanted + "' on " + host,
                      "Build a static library: leave out --shared. From Python: call Program.save(\"p.scl\"), then run 'scalide "
                      "build p.scl --target " +
                          wanted + "'"));
    }
    const ChildResult printed = run_command(c_compiler({"-dumpmachine"}));
    if (printed.ok && fits(triple_of(target), printed.output)) return;
    const std::string made =
        printed.ok ? printed.output.substr(0, printed.output.find('\n')) : "'" + named_compiler() + "': " + printed.reason;
    throw UserError(failed_action("compile the plan for " + wanted, "the C compiler makes code for " + made,
                                  "Name a cross compiler in the environment variable CC, such as CC=aarch64-linux-gnu-gcc for "
                                  "arm-64-linux"));
}

void write_library(const BuiltPrograms &programs, const BuildOptions &options, const KernelObjects &objects, const ObjectCache &cache,
                   const std::function<void(std::vector<fs::path> files)> &made) {
    const auto is_own = [](const auto &program) { return program[0].main.plan.statistics.empty(); };
    const bool is_one = !options.is_collection && std::ranges::count_if(programs, is_own) == 1;
    const std::string name = to_identifier(is_one ? programs[0][0].main.plan.name : options.name), source = plan_source(programs);
    const SignalsHeld signals; // an interrupted build leaves no part of a library
    const WorkFolder work(options.output_folder);
    std::vector<std::string> outputs{name + ".h", name + ".plan.c", name + ".json", "lib" + name + ".a"};
    write_file(work / outputs[0], plan_header(name, programs, described_targets(options.target)));
    write_file(work / outputs[1], source);
    write_file(work / outputs[2], plan_manifest(name, programs, objects.uses));
    const fs::path archive = work / outputs[3];
    const std::string cached = archive_key(source, options, objects) + ".a";
    if (const auto content = cache.read(cached)) {
        write_file(archive, *content);
    } else {
        make_archive(archive, work / outputs[1], options, objects);
        cache.insert_content(cached, read_file(archive));
    }
    if (options.shared_library) {
        outputs.push_back("lib" + name + ".so");
        link_shared(work / outputs.back(), archive, options);
    }
    std::vector<fs::path> files;
    for (const std::string &output : outputs) files.push_back(options.output_folder / output);
    made(std::move(files));
    work.publish(outputs, options.output_folder);
}

} // namespace scalide

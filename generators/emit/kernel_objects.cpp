#include "emit/kernel_objects.h"
#include "emit/device_code.h"
#include "emit/process.h"
#include "ir/text.h"
#include <thread>

namespace scalide {

namespace fs = std::filesystem;

namespace {

/// A kernel of a fused program.
struct Place {
    const Program *fused;
    std::string kernel;
    const PreparedKernel *prepared = nullptr; ///< null until it is
    fs::path part = {};                       ///< where its child writes
    const Program &text() const { return fused->program(kernel); }
};

/// Runs a job for each of these kernels, each in a child process. Throws InternalError with the words of the first that fails.
class KernelJobs {
public:
    using Job = std::function<void(const Place &)>;

    KernelJobs(const BuildOptions &options, const ObjectCache &cache) : options_(options), cache_(cache) {}

    void run(const std::vector<Place> &places, const Job &job, const Job &succeeded, const Job &failed) const {
        std::vector<std::function<void()>> work;
        for (const Place &place : places) work.push_back([&job, &place] { job(place); });
        std::string failure;
        const auto done = [&](size_t index, const ChildResult &result) {
            (result.ok ? succeeded : failed)(places[index]);
            if (!result.ok && failure.empty()) failure = words(places[index], result);
        };
        run_in_children(work, options_.jobs > 0 ? options_.jobs : static_cast<int>(std::max(1u, std::thread::hardware_concurrency())),
                        done);
        if (failure.empty()) return;
        cache_.check_room(); // a full disk is no mistake of ours
        throw InternalError(failure);
    }

private:
    static std::string words(const Place &place, const ChildResult &result) {
        return "kernel " + place.kernel + " did not compile: " + result.reason + "\n" + result.output + to_string(place.text());
    }

    const BuildOptions &options_;
    const ObjectCache &cache_;
};

std::string file_of(const PreparedKernel &kernel) { return kernel.key + ".o"; }

} // namespace

std::map<std::string, std::string> PreparedProgram::symbols() const {
    std::map<std::string, std::string> symbols;
    for (const auto &[name, kernel] : kernels) symbols[name] = kernel.symbol;
    return symbols;
}

std::vector<PreparedProgram> prepare_kernels(std::vector<Program> fused, const BuildOptions &options, const ObjectCache &cache) {
    const Halide::Target target = parse_target(options.target);
    std::vector<Place> unknown;
    for (const Program &program : fused)
        for (const Program &kernel : program.programs)
            if (!is_prepared(kernel, target, cache)) unknown.push_back({&program, kernel.name});
    const auto prepare = [&](const Place &place) { prepare_kernel(place.text(), target, cache); };
    const auto nothing = [](const Place &) {};
    KernelJobs(options, cache).run(unknown, prepare, nothing, nothing);
    std::vector<PreparedProgram> prepared;
    for (Program &program : fused) {
        PreparedKernels kernels;
        for (const Program &kernel : program.programs) kernels.emplace(kernel.name, prepare_kernel(kernel, target, cache));
        prepared.push_back({std::move(program), std::move(kernels)});
    }
    return prepared;
}

KernelObjects build_objects(const std::vector<PreparedProgram> &programs, const BuildOptions &options, const ObjectCache &cache) {
    const Halide::Target target = parse_target(options.target);
    KernelObjects objects;
    std::vector<Place> missing, found;
    for (const PreparedProgram &program : programs)
        for (const auto &[name, kernel] : program.kernels) {
            const auto [object, is_new] = objects.files.emplace(kernel.symbol, cache.find(file_of(kernel)));
            const Place place{&program.fused, name, &kernel, cache.part_of(file_of(kernel))};
            if (is_new) (object->second.empty() ? missing : found).push_back(place);
        }
    size_t done = 0;
    const auto tell = [&](const Place &place, bool cached) {
        done++;
        const std::string program = programs.size() > 1 ? place.fused->name + "." : ""; // kernels of several have the same names
        if (options.progress) options.progress(done, objects.files.size(), program + place.kernel, cached);
    };
    for (const Place &place : found) tell(place, true);
    const auto compile = [&](const Place &place) { compile_kernel(*place.prepared, target, place.part.string()); };
    const auto insert = [&](const Place &place) {
        objects.files[place.prepared->symbol] = cache.insert(file_of(*place.prepared), place.part);
        tell(place, false);
    };
    const auto remove = [&](const Place &place) {
        std::error_code ignored;
        fs::remove(place.part, ignored);
    };
    if (device_of(target) == Device::cuda && !missing.empty()) find_cuda_tools(); // what a user has to install is no child's failure
    KernelJobs(options, cache).run(missing, compile, insert, remove);
    objects.compiled = missing.size();
    return objects;
}

} // namespace scalide

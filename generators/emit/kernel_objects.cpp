#include "emit/kernel_objects.h"
#include "emit/process.h"
#include "ir/text.h"
#include <thread>

namespace scalide {

namespace fs = std::filesystem;

namespace {

/// Runs a job for each of these kernels, each in a child process. Throws InternalError with the words of the first that fails.
class KernelJobs {
public:
    using Job = std::function<void(const std::string &kernel)>;

    KernelJobs(const Program &fused, const BuildOptions &options, const ObjectCache &cache)
        : fused_(fused), options_(options), cache_(cache) {}

    void run(const std::vector<std::string> &kernels, const Job &job, const Job &succeeded, const Job &failed) const {
        std::vector<std::function<void()>> work;
        for (const std::string &kernel : kernels) work.push_back([&job, &kernel] { job(kernel); });
        std::string failure;
        const auto done = [&](size_t index, const ChildResult &result) {
            (result.ok ? succeeded : failed)(kernels[index]);
            if (!result.ok && failure.empty()) failure = words(kernels[index], result);
        };
        run_in_children(work, options_.jobs > 0 ? options_.jobs : static_cast<int>(std::max(1u, std::thread::hardware_concurrency())),
                        done);
        if (failure.empty()) return;
        cache_.check_room(); // a full disk is no mistake of ours
        throw InternalError(failure);
    }

private:
    std::string words(const std::string &kernel, const ChildResult &result) const {
        return "kernel " + kernel + " did not compile: " + result.reason + "\n" + result.output + to_string(fused_.program(kernel));
    }

    const Program &fused_;
    const BuildOptions &options_;
    const ObjectCache &cache_;
};

std::string file_of(const PreparedKernel &kernel) { return kernel.key + ".o"; }

} // namespace

PreparedKernels prepare_kernels(const Program &fused, const BuildOptions &options, const ObjectCache &cache) {
    const Halide::Target target = parse_target(options.target);
    std::vector<std::string> unknown;
    for (const Program &kernel : fused.programs)
        if (!is_prepared(kernel, target, cache)) unknown.push_back(kernel.name);
    const auto prepare = [&](const std::string &name) { prepare_kernel(fused.program(name), target, cache); };
    const auto nothing = [](const std::string &) {};
    KernelJobs(fused, options, cache).run(unknown, prepare, nothing, nothing);
    PreparedKernels kernels;
    for (const Program &kernel : fused.programs) kernels.emplace(kernel.name, prepare_kernel(kernel, target, cache));
    return kernels;
}

KernelObjects build_objects(const PreparedKernels &kernels, const Program &fused, const BuildOptions &options, const ObjectCache &cache) {
    const Halide::Target target = parse_target(options.target);
    KernelObjects objects;
    std::vector<std::string> missing, found;
    std::map<std::string, fs::path> parts; // by kernel: where its child writes
    for (const auto &[name, kernel] : kernels) {
        parts[name] = cache.part_of(file_of(kernel));
        const auto [object, is_new] = objects.files.emplace(kernel.symbol, cache.find(file_of(kernel)));
        if (is_new) (object->second.empty() ? missing : found).push_back(name);
    }
    size_t done = 0;
    const auto tell = [&](const std::string &name, bool cached) {
        done++;
        if (options.progress) options.progress(done, objects.files.size(), name, cached);
    };
    for (const std::string &name : found) tell(name, true);
    const auto compile = [&](const std::string &name) { compile_kernel(kernels.at(name), target, parts.at(name).string()); };
    const auto insert = [&](const std::string &name) {
        objects.files[kernels.at(name).symbol] = cache.insert(file_of(kernels.at(name)), parts.at(name));
        tell(name, false);
    };
    const auto remove = [&](const std::string &name) {
        std::error_code ignored;
        fs::remove(parts.at(name), ignored);
    };
    KernelJobs(fused, options, cache).run(missing, compile, insert, remove);
    objects.compiled = missing.size();
    return objects;
}

} // namespace scalide

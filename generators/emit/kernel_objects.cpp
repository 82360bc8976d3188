#include "emit/kernel_objects.h"
#include "emit/files.h"
#include "emit/process.h"
#include "ir/regions.h"
#include "ir/text.h"
#include "ir/words.h"
#include <deque>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

namespace scalide {

namespace fs = std::filesystem;

namespace {

/// A kernel of a form.
struct Place {
    const BuiltForm *built;
    std::string kernel;
    fs::path part = {}; ///< path at which its child process writes
    const Program &text() const { return built->kernel(kernel); }
    const PreparedKernel &prepared() const { return built->kernels.at(kernel); }
};

ChildLimits child_limits(const BuildOptions &options) {
    ChildLimits limits{static_cast<int>(std::max(1u, std::thread::hardware_concurrency())), options.child_seconds};
    if (options.jobs > 0) limits.jobs = options.jobs;
    return limits;
}

/// Runs a job for each kernel in a child process. A job that failed by a signal or without memory runs once more, alone: if memory is
/// short, Linux kills processes, and LLVM aborts if an allocation fails. For the first kernel that fails, throws InternalError with the
/// output and the kernel's text, or UserError if the machine or an input is the cause.
class KernelJobs {
public:
    using Job = std::function<void(const Place &)>;

    KernelJobs(const BuildOptions &options, const ObjectCache &cache) : options_(options), cache_(cache) {}

    void run(const std::vector<Place> &places, const Job &job, const Job &succeeded) const {
        std::vector<const Place *> waiting;
        for (const Place &place : places) waiting.push_back(&place);
        ChildLimits limits = child_limits(options_);
        std::vector<Failure> failures = run_each(waiting, limits, job, succeeded);
        auto last = std::find_if(failures.begin(), failures.end(), [](const Failure &failure) { return !failure.result.may_succeed; });
        if (last == failures.end()) {
            waiting.clear();
            for (const Failure &failure : failures) waiting.push_back(failure.place);
            if (options_.retry)
                for (const auto &[place, result] : failures) options_.retry("kernel " + place->kernel + ": " + words_of(result));
            limits.jobs = 1;
            failures = run_each(waiting, limits, job, succeeded);
            last = failures.begin();
        }
        if (failures.empty()) return;
        cache_.check_room(); // a full disk is no internal error
        fail(*last->place, last->result);
    }

private:
    struct Failure {
        const Place *place;
        ChildResult result;
    };

    /// Returns the failed jobs in the order in which they ended.
    std::vector<Failure> run_each(const std::vector<const Place *> &places, const ChildLimits &limits, const Job &job,
                                  const Job &succeeded) const {
        std::vector<std::function<void()>> work;
        for (const Place *place : places) work.push_back([&job, place] { job(*place); });
        std::vector<Failure> failures;
        run_in_children(work, limits, [&](size_t index, const ChildResult &result) {
            if (result.ok) return succeeded(*places[index]);
            failures.push_back({places[index], result});
        });
        if (!failures.empty()) cache_.trim(); // a child that runs out of memory leaves its temporary files
        return failures;
    }

    static std::string printed_by(const ChildResult &result) { return result.output.substr(0, result.output.find_last_not_of(" .\n") + 1); }

    static std::string words_of(const ChildResult &result) {
        return result.output.empty() ? result.reason : result.reason + ": " + printed_by(result);
    }

    [[noreturn]] static void fail(const Place &place, const ChildResult &result) {
        const bool is_ours = result.way_out.empty() && result.exit_status != child_of_bad_input;
        if (is_ours) {
            throw InternalError("internal error: kernel " + place.kernel + " did not compile: " + result.reason + "\n" + result.output +
                                to_string(place.text()));
        }
        const std::string printed = printed_by(result);
        const std::string way_out =
            printed.find("LLVM ERROR: IO failure") == std::string::npos ? result.way_out : "Check the free space of the disk";
        throw UserError(failed_action("compile kernel " + place.kernel, result.reason, way_out, printed));
    }

    const BuildOptions &options_;
    const ObjectCache &cache_;
};

std::string file_of(const PreparedKernel &kernel) { return kernel.key + ".o"; }
std::string uses_file_of(const PreparedKernel &kernel) { return kernel.key + ".cards.json"; }

/// Returns the object of a kernel in the cache, for CUDA with its resource report. An empty path if it must be compiled.
fs::path find_object(const PreparedKernel &kernel, const KernelTarget &target, const ObjectCache &cache, std::vector<CardUse> &uses) {
    if (target.cuda) {
        const auto content = cache.read(uses_file_of(kernel));
        const auto found = content ? parse_uses(*content) : std::nullopt;
        if (!found) return {};
        uses = *found;
    }
    return cache.find(file_of(kernel));
}

/// The kernels of a form by name, with their steps.
std::map<std::string, ReadyKernel> steps_of(const Form &form) {
    std::map<std::string, ReadyKernel> kernels;
    visit_programs(form.program, [&](const Program &program) {
        for (const Node &call : program.nodes) {
            if (call.op != "call") continue;
            const std::string &name = call.attributes.at("program").word;
            const std::string &value = program.value_name(call.results.at(0));
            const auto origin = form.origins.find(value);
            const Origin first = origin == form.origins.end() ? Origin{value, call.location} : origin->second;
            kernels.try_emplace(name, ReadyKernel{name, 0, first}).first->second.steps++;
        }
    });
    return kernels;
}

} // namespace

void prepare_kernels(BuiltPrograms &programs, const BuildOptions &options, const ObjectCache &cache) {
    std::vector<Place> unknown;
    each_built(programs, [&](const BuiltForm &built) {
        for (const Program &kernel : built.form.program.programs)
            if (!is_prepared(kernel, built.target.halide, cache)) unknown.push_back({&built, kernel.name});
    });
    const auto prepare = [&](const Place &place) { prepare_kernel(place.text(), place.built->target, cache); };
    KernelJobs(options, cache).run(unknown, prepare, [](const Place &) {});
    each_built(programs, [&](BuiltForm &built) {
        for (const Program &kernel : built.form.program.programs)
            built.kernels.emplace(kernel.name, prepare_kernel(kernel, built.target, cache));
    });
}

KernelObjects build_objects(const BuiltPrograms &programs, const BuildOptions &options, const ObjectCache &cache) {
    KernelObjects objects;
    std::vector<Place> missing, found;
    const SignalsHeld signals;  // until the temporary files are removed
    std::deque<PartFile> parts; // removed whatever happens to the children
    std::map<const BuiltForm *, std::map<std::string, ReadyKernel>> kernels;
    each_built(programs, [&](const BuiltForm &built) {
        kernels[&built] = steps_of(built.form);
        for (const auto &[name, kernel] : built.kernels) {
            const auto [object, is_new] = objects.files.try_emplace(kernel.symbol);
            if (!is_new) continue;
            object->second = find_object(kernel, built.target, cache, objects.uses[kernel.symbol]);
            (object->second.empty() ? missing : found).push_back({&built, name, parts.emplace_back(cache.part_of(file_of(kernel))).path});
        }
    });
    size_t done = 0;
    const auto tell = [&](const Place &place, bool cached) {
        done++;
        if (!options.progress) return;
        ReadyKernel kernel = kernels.at(place.built).at(place.kernel);
        if (kernels.size() > 1) // forms may have kernels of one name
            kernel.name = name_to_string(place.built->form.program.name) + "." + kernel.name;
        kernel.is_cached = cached;
        options.progress(done, objects.files.size(), kernel);
    };
    for (const Place &place : found) tell(place, true);
    const auto compile = [&](const Place &place) {
        const std::vector<CardUse> uses = compile_kernel(place.prepared(), place.built->target, place.part.string());
        if (place.built->target.cuda) cache.insert_content(uses_file_of(place.prepared()), to_json(uses).dump());
    };
    const auto insert = [&](const Place &place) {
        const PreparedKernel &kernel = place.prepared();
        objects.files[kernel.symbol] = cache.insert(file_of(kernel), place.part);
        if (place.built->target.cuda) objects.uses[kernel.symbol] = parse_uses(cache.read(uses_file_of(kernel)).value()).value();
        tell(place, false);
    };
    KernelJobs(options, cache).run(missing, compile, insert);
    objects.compiled = missing.size();
    return objects;
}

} // namespace scalide

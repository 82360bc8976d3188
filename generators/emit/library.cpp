#include "emit/library.h"
#include "emit/cache.h"
#include "emit/compile_kernel.h"
#include "emit/files.h"
#include "emit/plan_text.h"
#include "emit/process.h"
#include "ir/text.h"
#include <chrono>
#include <thread>

namespace scalide {

namespace fs = std::filesystem;

namespace {

using Prepared = std::map<std::string, PreparedKernel>; // by sub-program

Prepared prepare_all(const Program &fused, const Halide::Target &target) {
    Prepared prepared;
    for (const Program &kernel : fused.programs) prepared.emplace(kernel.name, prepare_kernel(kernel, target));
    return prepared;
}

// The object file of each kernel symbol; those not in the cache are compiled by children.
class ObjectBuilder {
public:
    ObjectBuilder(const BuildOptions &options, const Program &fused, Prepared &prepared)
        : options_(options), fused_(fused), prepared_(prepared),
          cache_(options.cache_folder.empty() ? ObjectCache::default_folder() : options.cache_folder) {}

    std::map<std::string, fs::path> run(const Halide::Target &target) {
        for (auto &[name, kernel] : prepared_) {
            if (!objects_.emplace(kernel.symbol, cache_.find(kernel.key)).second) continue;
            if (objects_[kernel.symbol].empty()) {
                missing_.push_back(name);
            } else {
                tell(name, true);
            }
        }
        std::vector<std::function<void()>> work;
        for (const std::string &name : missing_) {
            PreparedKernel &kernel = prepared_.at(name);
            const std::string part = cache_.part_of(kernel.key).string();
            work.push_back([&kernel, &target, part] { compile_kernel(kernel, target, part); });
        }
        const int jobs = options_.jobs > 0 ? options_.jobs : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
        run_in_children(work, jobs, [&](size_t index, const ChildResult &result) { finish(missing_[index], result); });
        cache_.trim();
        if (!failure_.empty()) {
            cache_.check_room(); // a full disk is no mistake of ours
            throw InternalError(failure_);
        }
        return objects_;
    }

    size_t compiled() const { return missing_.size(); }

private:
    void tell(const std::string &name, bool cached) {
        done_++;
        if (options_.progress) options_.progress(done_, objects_.size(), name, cached);
    }

    void finish(const std::string &name, const ChildResult &result) {
        const PreparedKernel &kernel = prepared_.at(name);
        if (result.ok) {
            objects_[kernel.symbol] = cache_.insert(kernel.key, cache_.part_of(kernel.key));
            tell(name, false);
            return;
        }
        std::error_code ignored;
        fs::remove(cache_.part_of(kernel.key), ignored);
        if (failure_.empty()) {
            failure_ = "kernel " + name + " did not compile: " + result.reason + "\n" + result.output + to_string(fused_.program(name));
        }
    }

    const BuildOptions &options_;
    const Program &fused_;
    Prepared &prepared_;
    ObjectCache cache_;
    std::map<std::string, fs::path> objects_; // by symbol; empty while it is not there
    std::vector<std::string> missing_;
    std::string failure_;
    size_t done_ = 0;
};

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

// Everything is made in a folder beside the outputs and moved at the end.
void write_library(const BuildOptions &options, const BuildReport &report, const std::map<std::string, fs::path> &objects,
                   const std::map<std::string, std::string> &symbols, std::vector<fs::path> &files) {
    const std::string name = to_identifier(report.plan.name);
    WorkFolder work(options.output_folder);
    std::vector<std::string> outputs{name + ".h", name + ".plan.c", name + ".json", "lib" + name + ".a"};
    write_file(work / outputs[0], plan_header(report.plan));
    write_file(work / outputs[1], plan_source(report.plan, symbols));
    write_file(work / outputs[2], plan_manifest(report.plan, report.fused, symbols));
    const std::string plan_object = work / (name + ".plan.o");
    run_or_throw(
        {c_compiler(), "-std=c99", "-O1", "-fPIC", "-c", work / outputs[1], "-I" + options.include_folder.string(), "-o", plan_object},
        "plan");
    std::vector<std::string> archive{"ar", "rcsD", work / outputs[3], plan_object};
    for (const auto &[symbol, object] : objects) archive.push_back(object);
    run_or_throw(archive, "archive");
    if (options.shared_library) {
        outputs.push_back("lib" + name + ".so");
        std::vector<std::string> link{c_compiler(), "-shared", "-o", work / outputs.back()};
        link.insert(link.end(), archive.begin() + 3, archive.end());
        link.insert(link.end(), {options.runtime_library.string(), "-lpthread"});
        run_or_throw(link, "shared library");
    }
    for (const std::string &output : outputs) {
        files.push_back(options.output_folder / output);
        move_file(work / output, files.back());
    }
}

} // namespace

TargetFacts target_facts(const std::string &text) {
    parse_target(text); // throws for a text that is no target
    return {text};
}

BuildReport build_library(const Program &program, const Rulebook &rulebook, const BuildOptions &options) {
    const auto start = std::chrono::steady_clock::now();
    const Halide::Target target = parse_target(options.target);
    BuildReport report;
    report.fused = compile(program, rulebook, {options.policy, target_facts(options.target), options.after_pass});
    if (!options.name.empty()) report.fused.name = options.name;
    Prepared prepared = prepare_all(report.fused, target);
    CallOrders call_orders;
    std::map<std::string, std::string> symbols;
    std::string identity;
    for (const auto &[name, kernel] : prepared) {
        call_orders[name] = call_order(kernel.lowered);
        symbols[name] = kernel.symbol;
        identity += kernel.key;
    }
    report.plan = make_plan(report.fused, call_orders);
    report.plan.target = target.to_string();
    report.plan.numerics = options.policy.name;
    report.plan.hash = hash_text(to_string(report.fused) + identity);
    ObjectBuilder objects(options, report.fused, prepared);
    const std::map<std::string, fs::path> object_files = objects.run(target);
    write_library(options, report, object_files, symbols, report.files);
    report.kernels = object_files.size();
    report.steps = report.plan.steps.size();
    report.compiled = objects.compiled();
    report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return report;
}

} // namespace scalide

#include "emit/kernel_objects.h"
#include "emit/process.h"
#include "ir/text.h"
#include <thread>

namespace scalide {

namespace fs = std::filesystem;

namespace {

// The object file of each kernel symbol; those not in the cache are compiled by children.
class ObjectBuilder {
public:
    ObjectBuilder(const BuildOptions &options, const Program &fused, const PreparedKernels &prepared, const ObjectCache &cache)
        : options_(options), fused_(fused), prepared_(prepared), cache_(cache) {}

    KernelObjects run() {
        for (const auto &[name, kernel] : prepared_) {
            if (!objects_.emplace(kernel.symbol, cache_.find(file_of(kernel))).second) continue;
            if (objects_[kernel.symbol].empty()) {
                missing_.push_back(name);
            } else {
                tell(name, true);
            }
        }
        std::vector<std::function<void()>> work;
        for (const std::string &name : missing_) {
            const PreparedKernel &kernel = prepared_.at(name);
            const std::string part = cache_.part_of(file_of(kernel)).string();
            work.push_back([&kernel, target = parse_target(options_.target), part] { compile_kernel(kernel, target, part); });
        }
        const int jobs = options_.jobs > 0 ? options_.jobs : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
        run_in_children(work, jobs, [&](size_t index, const ChildResult &result) { finish(missing_[index], result); });
        if (!failure_.empty()) {
            cache_.check_room(); // a full disk is no mistake of ours
            throw InternalError(failure_);
        }
        return {objects_, missing_.size()};
    }

private:
    static std::string file_of(const PreparedKernel &kernel) { return kernel.key + ".o"; }

    void tell(const std::string &name, bool cached) {
        done_++;
        if (options_.progress) options_.progress(done_, objects_.size(), name, cached);
    }

    void finish(const std::string &name, const ChildResult &result) {
        const PreparedKernel &kernel = prepared_.at(name);
        if (result.ok) {
            objects_[kernel.symbol] = cache_.insert(file_of(kernel), cache_.part_of(file_of(kernel)));
            tell(name, false);
            return;
        }
        std::error_code ignored;
        fs::remove(cache_.part_of(file_of(kernel)), ignored);
        if (failure_.empty()) {
            failure_ = "kernel " + name + " did not compile: " + result.reason + "\n" + result.output + to_string(fused_.program(name));
        }
    }

    const BuildOptions &options_;
    const Program &fused_;
    const PreparedKernels &prepared_;
    const ObjectCache &cache_;
    std::map<std::string, fs::path> objects_; // by symbol; empty while it is not there
    std::vector<std::string> missing_;
    std::string failure_;
    size_t done_ = 0;
};

} // namespace

KernelObjects build_objects(const PreparedKernels &kernels, const Program &fused, const BuildOptions &options, const ObjectCache &cache) {
    return ObjectBuilder(options, fused, kernels, cache).run();
}

} // namespace scalide

#include "gpu/opencl_kernel.h"
#include "schedules/schedule.h"
#include <algorithm>
#include <cstdlib>
#include <dlfcn.h>

namespace scalide {
namespace {

/// A Halide buffer of this type over words, dimension 0 the last axis. The kernel looks at nothing but its address.
Halide::Buffer<> wrap(Words &words, const Halide::Type &word, const Type &type, const Extent::Bindings &symbols) {
    std::vector<int> extents;
    for (const Extent &extent : type.shape) extents.insert(extents.begin(), std::max(1, int(extent.evaluate(symbols))));
    if (words.empty()) words.resize(size_t(word.bytes())); // an empty array is never read, but has an address
    Halide::Buffer<> buffer(word, words.data(), extents);
    buffer.set_host_dirty();
    return buffer;
}

size_t bytes_of(const Type &type, const Extent::Bindings &symbols) {
    return size_t(element_count(type.shape).evaluate(symbols)) * size_t(size_of(type.dtype));
}

} // namespace

Halide::Target opencl_target() {
    return Halide::get_host_target()
        .with_feature(Halide::Target::OpenCL)
        .with_feature(Halide::Target::CLDoubles)
        .with_feature(Halide::Target::NoAsserts)
        .with_feature(Halide::Target::NoBoundsQuery);
}

std::optional<std::string> why_no_opencl() {
    void *library = dlopen("libOpenCL.so.1", RTLD_NOW);
    if (!library) return "no OpenCL: " + std::string(dlerror());
    const auto get_platforms = reinterpret_cast<int (*)(unsigned, void *, unsigned *)>(dlsym(library, "clGetPlatformIDs"));
    unsigned count = 0;
    if (!get_platforms || get_platforms(0, nullptr, &count) != 0 || count == 0) return "OpenCL has no platform here";
    return std::nullopt;
}

OpenclKernel::OpenclKernel(const Program &program) try : kernel_(lower(program, target_, choose_budgets(target_))) {
    schedule(kernel_, choose_tiles(kernel_, target_), target_);
    pipeline_ = to_pipeline(kernel_);
    if (const char *folder = std::getenv("SCALIDE_KEEP_KERNELS")) {
        const std::string base = std::string(folder) + "/" + program.name;
        pipeline_.compile_to({{Halide::OutputFileType::stmt, base + ".stmt"}, {Halide::OutputFileType::device_code, base + ".cl"}},
                             halide_arguments(kernel_), "kernel", target_);
    }
    pipeline_.compile_jit(target_);
} catch (const Halide::Error &error) {
    throw std::runtime_error(std::string("Halide: ") + error.what());
}

bool OpenclKernel::can_run(const Extent::Bindings &symbols) const {
    const Program &program = kernel_.program;
    const auto has_elements = [&](ValueId value) { return bytes_of(program.type(value), symbols) > 0; };
    return std::ranges::all_of(program.results, [&](const Result &result) { return has_elements(result.value); }) &&
           std::ranges::all_of(program.nodes, [&](const Node &node) {
               return !node.op.starts_with("reduce_") || std::ranges::all_of(node.results, has_elements);
           });
}

std::vector<Words> OpenclKernel::run(std::vector<Words> &arguments, const Extent::Bindings &symbols) const try {
    const Program &program = kernel_.program;
    std::vector<Words> results(program.results.size());
    for (const auto &[name, param] : kernel_.symbols) Halide::Param<int>(param).set(int(symbols.at(name)));
    for (size_t i = 0; i < kernel_.inputs.size(); i++) {
        Halide::ImageParam input = kernel_.inputs[i];
        if (input.defined()) input.set(wrap(arguments[i], input.type(), program.type(program.arguments[i].value), symbols));
    }
    std::vector<Halide::Buffer<>> buffers;
    for (const KernelOutput &output : kernel_.outputs) {
        for (size_t component = 0; component < output.results.size(); component++) {
            const Result &result = program.results[output.results[component]];
            const Type &type = program.type(result.value);
            Words &words = result.argument >= 0 ? arguments[result.argument] : results[output.results[component]];
            words.resize(bytes_of(type, symbols));
            buffers.push_back(wrap(words, output.func.types()[component], type, symbols));
        }
    }
    Halide::Pipeline(pipeline_).realize(Halide::Realization(buffers), target_);
    for (Halide::Buffer<> &buffer : buffers) buffer.copy_to_host();
    return results;
} catch (const Halide::Error &error) {
    throw std::runtime_error(std::string("Halide: ") + error.what());
}

} // namespace scalide

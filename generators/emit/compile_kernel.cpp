#include "emit/compile_kernel.h"
#include "emit/device_code.h"
#include "emit/files.h"
#include "emit/host_code.h"
#include "emit/kernel_facts.h"
#include "ir/text.h"
#include "schedules/tiles_text.h"

namespace scalide {

std::string device_name(Device device) {
    const char *names[] = {"cpu", "cuda", "opencl"};
    return names[static_cast<int>(device)];
}

namespace {

// Targets by name. The host code of a device's kernels only launches: it runs on any CPU of the architecture.
struct DeviceTarget {
    Device device;
    std::vector<Halide::Target::Feature> features;
};
const std::vector<DeviceTarget> device_targets = {
    {Device::cuda, {Halide::Target::CUDA, Halide::Target::CUDACapability80}},
    {Device::opencl, {Halide::Target::OpenCL, Halide::Target::CLDoubles}},
};

Halide::Target named_target(const std::string &text) {
    const Halide::Target host = Halide::get_host_target();
    for (const DeviceTarget &row : device_targets) {
        if (device_name(row.device) == text) return Halide::Target(host.os, host.arch, host.bits, row.features);
    }
    if (text != "host" && !Halide::Target::validate_target_string(text)) {
        throw UserError(
            {{}, "target", "must be host, opencl, cuda, or a target of Halide such as x86-64-linux-avx2-fma-f16c", "'" + text + "'", ""});
    }
    return Halide::Target(text);
}

} // namespace

Halide::Target parse_target(const std::string &text) {
    return named_target(text)
        .with_feature(Halide::Target::NoRuntime)
        .with_feature(Halide::Target::NoAsserts)
        .with_feature(Halide::Target::NoBoundsQuery)
        .with_feature(Halide::Target::UserContext);
}

Device device_of(const Halide::Target &target) {
    for (const DeviceTarget &row : device_targets) {
        if (target.has_feature(row.features[0])) return row.device;
    }
    return Device::cpu;
}

std::string words_of(const Halide::Error &error) {
    std::string words = error.what();
    words.erase(words.find_last_not_of(" \n") + 1);
    return words == "Error:" ? "Halide failed an assertion without a text; HL_DEBUG_CODEGEN=1 shows where" : words;
}

namespace {

// Halide's errors are no std::exception.
LoweredKernel lower_checked(const Program &program, const Halide::Target &target) {
    try {
        return lower(program, target);
    } catch (const Halide::Error &error) {
        throw InternalError(words_of(error) + "\n" + to_string(program));
    }
}

// The file of facts is named by all that lowering and the choice of tiles depend on.
std::string facts_file(const std::string &lowering) { return hash_text(lowering + hash_text(tiles_text)) + ".json"; }

KernelFacts facts_of(const Program &program, const Halide::Target &target, const std::string &lowering, const ObjectCache &cache) {
    const auto file = cache.find(facts_file(lowering));
    if (!file.empty()) {
        if (auto facts = parse_facts(read_file(file))) return *facts;
    }
    const LoweredKernel lowered = lower_checked(program, target);
    const KernelFacts facts{choose_tiles(lowered, target), call_order(lowered)};
    cache.insert_content(facts_file(lowering), to_json(facts));
    return facts;
}

} // namespace

bool is_prepared(const Program &kernel, const Halide::Target &target, const ObjectCache &cache) {
    return !cache.find(facts_file(lowering_key(canonical(kernel), target, lowering_hashes()))).empty();
}

PreparedKernel prepare_kernel(const Program &kernel, const Halide::Target &target, const ObjectCache &cache) {
    PreparedKernel prepared{canonical(kernel), {}, {}, "", ""};
    const std::string lowering = lowering_key(prepared.program, target, lowering_hashes());
    KernelFacts facts = facts_of(prepared.program, target, lowering, cache);
    prepared.tiles = std::move(facts.tiles);
    prepared.call_order = std::move(facts.call_order);
    prepared.key = kernel_key(lowering, prepared.tiles);
    prepared.symbol = "scalide_kernel_" + prepared.key;
    return prepared;
}

namespace {

Halide::Module assembled(const Halide::Module &module) {
    const WorkFolder folder(std::filesystem::temp_directory_path() / "scalide");
    std::vector<CardUse> uses;
    return with_device_code(module, assemble(module, cuda_cards, find_cuda_tools(), folder.path(), uses));
}

} // namespace

void compile_kernel(const PreparedKernel &kernel, const Halide::Target &target, const std::string &object_file) {
    try {
        LoweredKernel lowered = lower(kernel.program, target);
        schedule(lowered, kernel.tiles, target);
        Halide::Pipeline pipeline = to_pipeline(lowered);
        if (target.has_gpu_feature()) adapt_host_code(pipeline);
        Halide::Module module = pipeline.compile_to_module(halide_arguments(lowered), kernel.symbol, target);
        if (target.has_gpu_feature()) check_host_code(module);
        if (device_of(target) == Device::cuda) module = assembled(module);
        module.compile({{Halide::OutputFileType::object, object_file}});
    } catch (const Halide::Error &error) { // no std::exception
        throw InternalError(words_of(error));
    }
}

} // namespace scalide

#include "emit/kernel_target.h"
#include "expr/error.h"

namespace scalide {

std::string device_name(Device device) {
    const char *names[] = {"cpu", "cuda", "opencl"};
    return names[static_cast<int>(device)];
}

namespace {

// Targets by name. The host code of a device kernel only launches, so it is compiled for any CPU of the architecture.
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
            {{}, "target", "must be host, opencl, cuda or a Halide target such as x86-64-linux-avx2-fma-f16c", "'" + text + "'", ""});
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

std::vector<int> cards_of(const std::string &text, const std::vector<std::string> &cards) {
    const bool is_cuda = device_of(parse_target(text)) == Device::cuda;
    if (!is_cuda && !cards.empty()) throw UserError(statement({}, "--cuda-arch needs --target cuda (the target is '" + text + "')"));
    return is_cuda ? chosen_cards(cards) : std::vector<int>();
}

KernelTarget kernel_target(const std::string &text, const std::vector<std::string> &cards) {
    KernelTarget target{parse_target(text), {}};
    const std::vector<int> chosen = cards_of(text, cards);
    if (!chosen.empty()) target.cuda = {find_cuda_tools(), chosen};
    return target;
}

std::string assembly_key(const KernelTarget &target) {
    if (!target.cuda) return "";
    std::string key = target.cuda->tools.version;
    for (const int card : target.cuda->cards) key += " " + std::to_string(card);
    return key;
}

} // namespace scalide

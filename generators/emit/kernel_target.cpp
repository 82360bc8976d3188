#include "emit/kernel_target.h"
#include "expr/error.h"
#include "lower/halide/amx_feature.h"
#include "rulebook/nearest.h"
#include <algorithm>
#include <cstdlib>
#include <sstream>
#if defined(__x86_64__) && defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace scalide {

std::string device_name(Device device) {
    switch (device) {
    case Device::cpu: return "cpu";
    case Device::cuda: return "cuda";
    case Device::opencl: return "opencl";
    }
    throw InternalError("internal error: a device of unknown kind");
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

// A level of the x86-64 ABI, as far as kernels use its features.
struct CpuLevel {
    std::string name;
    std::vector<Halide::Target::Feature> features;
};
const std::vector<CpuLevel> cpu_levels = {
    {"x86-64-v2", {Halide::Target::SSE41}},
    {"x86-64-v3", {Halide::Target::SSE41, Halide::Target::AVX, Halide::Target::F16C, Halide::Target::FMA, Halide::Target::AVX2}},
    {"x86-64-v4",
     {Halide::Target::SSE41, Halide::Target::AVX, Halide::Target::F16C, Halide::Target::FMA, Halide::Target::AVX2, Halide::Target::AVX512,
      Halide::Target::AVX512_Skylake}},
    {"x86-64-v4+amx",
     {Halide::Target::SSE41, Halide::Target::AVX, Halide::Target::F16C, Halide::Target::FMA, Halide::Target::AVX2, Halide::Target::AVX512,
      Halide::Target::AVX512_Skylake, Halide::Target::AVX512_Cannonlake, Halide::Target::AVX512_SapphireRapids, amx_feature}},
};

// Instructions of this machine that no level contains. A machine has them if Halide finds one of the features.
struct CpuExtension {
    std::vector<Halide::Target::Feature> features;
    std::string name;
};
const std::vector<CpuExtension> cpu_extensions = {
    {{Halide::Target::AVXVNNI, Halide::Target::AVX512_Zen5, Halide::Target::AVX512_SapphireRapids}, "AVX-VNNI"},
    {{Halide::Target::AVX512_Zen4, Halide::Target::AVX512_Zen5, Halide::Target::AVX512_SapphireRapids}, "AVX-512 VNNI, BF16"},
    {{amx_feature}, "AMX"},
};

std::vector<std::string> target_names() {
    std::vector<std::string> names{"host"};
    for (const DeviceTarget &row : device_targets) names.push_back(device_name(row.device));
    for (const CpuLevel &level : cpu_levels) names.push_back(level.name);
    return names;
}

bool has_features(const Halide::Target &target, const std::vector<Halide::Target::Feature> &features) {
    return std::ranges::all_of(features, [&](Halide::Target::Feature feature) { return target.has_feature(feature); });
}

/// True if every feature of `other` is one of `target`.
bool contains(const Halide::Target &target, const Halide::Target &other) {
    for (int i = 0; i < Halide::Target::FeatureEnd; i++) {
        const auto feature = static_cast<Halide::Target::Feature>(i);
        if (other.has_feature(feature) && !target.has_feature(feature)) return false;
    }
    return true;
}

/// Returns the text of a Halide target without its part `amx`, which Halide does not know.
std::string without_amx(const std::string &text) {
    std::string rest;
    std::istringstream parts(text);
    for (std::string part; std::getline(parts, part, '-');)
        if (part != "amx") rest += (rest.empty() ? "" : "-") + part;
    return rest;
}

/// Returns a Halide target with tiles. Halide emits their instructions for Sapphire Rapids only.
Halide::Target with_amx(const Halide::Target &target, const std::string &text) {
    if (target.arch == Halide::Target::X86 && target.bits == 64 && target.has_feature(Halide::Target::AVX512_SapphireRapids))
        return target.with_feature(amx_feature);
    throw UserError(
        {{}, "target", "a target with amx must be for x86-64 and have avx512_sapphirerapids", "'" + text + "'", "Use x86-64-v4+amx"});
}

/// Returns the target of a level of x86-64, or of a Halide target. Nothing for other texts.
std::optional<Halide::Target> cpu_or_halide_target(const std::string &text) {
    const auto level = std::ranges::find(cpu_levels, text, &CpuLevel::name);
    if (level != cpu_levels.end()) {
        Halide::Target target(Halide::get_host_target().os, Halide::Target::X86, 64);
        target.set_features(level->features); // the constructor refuses a feature of ARM, which amx_feature is
        return target;
    }
    const std::string rest = without_amx(text);
    if (rest.empty() || !Halide::Target::validate_target_string(rest)) return {};
    return rest == text ? Halide::Target(text) : with_amx(Halide::Target(rest), text);
}

/// Returns the operating system and the architecture of a target, without its features.
std::string machine_of(const Halide::Target &target) { return Halide::Target(target.os, target.arch, target.bits).to_string(); }

std::string named_host() {
    const char *name = std::getenv("SCALIDE_HOST_TARGET");
    return name ? name : "";
}

/// True if this machine has tiles of bf16 and bytes, and the system lends them to processes. Linux names tiles only if the CPU has them.
/// The build does not ask for permission, because permission raises the least size of signal stacks.
bool has_usable_tiles(const Halide::Target &machine) {
#if defined(__x86_64__) && defined(__linux__)
    constexpr long get_supported = 0x1021; // ARCH_GET_XCOMP_SUPP of Linux 5.16
    constexpr uint64_t tile_states = uint64_t(3) << 17;
    constexpr uint32_t tile_bits = 1u << 22 | 1u << 24 | 1u << 25; // AMX-BF16, AMX-TILE, AMX-INT8
    uint64_t supported = 0;
    uint32_t leaf = 7, subleaf = 0, b, d;
    if (!machine.has_feature(Halide::Target::AVX512_SapphireRapids)) return false;
    __asm__("cpuid" : "+a"(leaf), "=b"(b), "+c"(subleaf), "=d"(d));
    return (d & tile_bits) == tile_bits && syscall(SYS_arch_prctl, get_supported, &supported) == 0 &&
           (supported & tile_states) == tile_states;
#else
    (void)machine;
    return false;
#endif
}

std::string level_names() {
    std::vector<std::string> names;
    for (const CpuLevel &level : cpu_levels) names.push_back(level.name);
    return joined(names);
}

/// Returns what `host` means: the target that SCALIDE_HOST_TARGET names, or the CPU of this machine. Throws UserError for a target of
/// another architecture or of a device.
Halide::Target host_target() {
    const Halide::Target machine = Halide::get_host_target();
    const std::string name = named_host();
    if (name.empty()) return has_usable_tiles(machine) ? machine.with_feature(amx_feature) : machine;
    const auto target = cpu_or_halide_target(name);
    if (!target || machine_of(*target) != machine_of(machine) || target->has_gpu_feature())
        throw UserError({{},
                         "SCALIDE_HOST_TARGET",
                         "must be a CPU target for " + machine_of(machine),
                         "'" + name + "'",
                         "Use " + level_names() + ", or a Halide target such as x86-64-linux-avx2-fma-f16c"});
    return *target;
}

Halide::Target named_target(const std::string &text) {
    const Halide::Target machine = Halide::get_host_target();
    for (const DeviceTarget &row : device_targets) {
        if (device_name(row.device) == text) return Halide::Target(machine.os, machine.arch, machine.bits, row.features);
    }
    if (text == "host") return host_target();
    const auto target = cpu_or_halide_target(text);
    if (!target) {
        const std::vector<std::string> names = target_names();
        throw UserError(
            unknown_name({}, "target", text,
                         suggestion(text, names, "Use a Halide target such as x86-64-linux-avx2-fma-f16c, or one of: " + joined(names))));
    }
    return *target;
}

/// Returns what `host` means: its name in SCALIDE_HOST_TARGET, the level of x86-64 of this machine and its further instructions, or the
/// Halide target of this machine without features.
std::string host_words() {
    const Halide::Target host = host_target();
    if (!named_host().empty()) return named_host() + " (SCALIDE_HOST_TARGET)";
    std::string words = machine_of(host);
    if (host.arch != Halide::Target::X86) return words;
    for (const CpuLevel &level : cpu_levels)
        if (has_features(host, level.features)) words = level.name;
    std::vector<std::string> extensions;
    for (const auto &[features, name] : cpu_extensions)
        if (host.features_any_of(features)) extensions.push_back(name);
    return extensions.empty() ? words : words + " (" + joined(extensions) + ")";
}

} // namespace

Halide::Target parse_target(const std::string &text) {
    return named_target(text)
        .with_feature(Halide::Target::NoRuntime)
        .with_feature(Halide::Target::NoAsserts)
        .with_feature(Halide::Target::NoBoundsQuery)
        .with_feature(Halide::Target::UserContext);
}

std::vector<std::string> cpu_features(const std::string &text) {
    const Halide::Target target = named_target(text);
    std::vector<std::string> names;
    for (int i = 0; i < Halide::Target::FeatureEnd; i++) {
        const auto feature = static_cast<Halide::Target::Feature>(i);
        const bool is_amx = feature == amx_feature && target.arch == Halide::Target::X86;
        if (target.has_feature(feature)) names.push_back(is_amx ? "amx" : Halide::Target::feature_to_name(feature));
    }
    return names;
}

std::vector<std::string> split_targets(const std::string &text) {
    std::vector<std::string> names;
    std::istringstream words(text + ",");
    for (std::string word; std::getline(words, word, ',');) {
        const Halide::Target target = parse_target(word);
        for (const std::string &before : names) {
            if (contains(parse_target(before), target))
                throw UserError({{},
                                 "target",
                                 "a target of a list must have instructions that those before it lack",
                                 "'" + word + "' after '" + before + "'",
                                 "Put the target with the fewest instructions first, and each target once"});
        }
        names.push_back(word);
    }
    for (const std::string &name : names) {
        if (names.size() > 1 && device_of(parse_target(name)) != Device::cpu)
            throw UserError(
                {{}, "target", "each target of a list must be a CPU", "'" + name + "'", "Build a library for the device alone"});
    }
    return names;
}

std::string described_targets(const std::string &text) {
    std::vector<std::string> words;
    for (const std::string &name : split_targets(text)) words.push_back(name == "host" ? host_words() : name);
    return joined(words);
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

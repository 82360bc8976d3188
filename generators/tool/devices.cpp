#include "emit/kernel_target.h"
#include "tool/common.h"
#include "tool/host_cpu.h"
#include "tool/open_context.h"
#include "tool/speed_report.h"
#include <fmt/core.h>

namespace scalide {

namespace {

/// Returns the CPU of this machine, what `--target host` means, and how the CPU multiplies each number format.
std::string described_cpu() {
    const HostCpu cpu = host_cpu();
    std::string table = speed_table(parse_target("host"));
    table.pop_back(); // the end of its last line
    return fmt::format("{}, {} hardware threads, caches {}\ntarget host: {}\n{}", cpu.model, cpu.threads, cpu.caches,
                       described_targets("host"), table);
}

/// A text such as `cuda 0: NVIDIA H200`, or the reason why there is no such device.
struct Answer {
    bool is_there;
    std::string words;
};

Answer ask(int32_t device, int32_t index) {
    const OpenedContext context = open_context(device, index);
    if (!context.handle) return {false, context.message};
    const std::string name = device == SCALIDE_CPU ? described_cpu() : scalide_context_device_name(context.handle.get());
    return {true, fmt::format("{} {}: {}", scalide_device_name(device), index, name)};
}

void show_devices(const std::string &wanted) {
    for (int32_t device = 0; device < SCALIDE_DEVICE_COUNT; device++) {
        const std::string name = scalide_device_name(device);
        if (!wanted.empty() && wanted != name) continue;
        Answer answer = ask(device, 0);
        if (!answer.is_there && !wanted.empty()) throw UserError({{}, name, answer.words, "", ""});
        if (!answer.is_there) fmt::print("{}: {}\n", name, answer.words);
        const int32_t most = device == SCALIDE_CPU ? 1 : INT32_MAX; // all CPUs are one device
        for (int32_t i = 1; answer.is_there; i++) {
            fmt::print("{}\n", answer.words);
            answer = i < most ? ask(device, i) : Answer{};
        }
    }
}

} // namespace

void add_devices(CLI::App &app) {
    const auto wanted = std::make_shared<std::string>();
    CLI::App *devices = app.add_subcommand(
        "devices", "List the devices of this machine, how its CPU multiplies number formats, and why a kind of device is not available.");
    devices->add_option("KIND", *wanted, "List only this kind (cpu, cuda, opencl); fail if there is none.")
        ->check(CLI::IsMember({"cpu", "cuda", "opencl"}));
    devices->callback([wanted] { show_devices(*wanted); });
}

} // namespace scalide

#include "tool/common.h"
#include "tool/open_context.h"
#include <fmt/core.h>

namespace scalide {

namespace {

/// A line such as `cuda 0: NVIDIA H200`, or the reason why there is no such device.
struct Answer {
    bool is_there;
    std::string words;
};

Answer ask(int32_t device, int32_t index) {
    const OpenedContext context = open_context(device, index);
    if (!context.handle) return {false, context.message};
    return {true, fmt::format("{} {}: {}", scalide_device_name(device), index, scalide_context_device_name(context.handle.get()))};
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
    CLI::App *devices = app.add_subcommand("devices", "List the devices of this machine, and say why a kind of device is not available.");
    devices->add_option("KIND", *wanted, "List only this kind (cpu, cuda, opencl); fail if there is none.")
        ->check(CLI::IsMember({"cpu", "cuda", "opencl"}));
    devices->callback([wanted] { show_devices(*wanted); });
}

} // namespace scalide

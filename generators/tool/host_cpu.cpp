#include "tool/host_cpu.h"
#include "schedules/tables/machine_caches.h"
#include <fstream>
#include <thread>

namespace scalide {

namespace {

/// Returns the text after the colon of the first line of /proc/cpuinfo with this key, or nothing.
std::string cpu_fact(const std::string &key) {
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; std::getline(file, line);) {
        const size_t colon = line.find(": ");
        if (line.starts_with(key) && colon != std::string::npos) return line.substr(colon + 2);
    }
    return "";
}

std::string caches_of_core() {
    std::string text;
    for (const auto &[level, size] : machine_caches())
        text += (text.empty() ? "L" : ", L") + level.substr(1) + " " + std::to_string(size) + " KiB";
    return text.empty() ? "unknown" : text;
}

} // namespace

HostCpu host_cpu() {
    const std::string model = cpu_fact("model name");
    return {model.empty() ? "unknown model" : model, std::thread::hardware_concurrency(), caches_of_core()};
}

} // namespace scalide

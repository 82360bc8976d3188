#include "tool/host_cpu.h"
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

std::string first_line(const std::string &file) {
    std::ifstream stream(file);
    std::string line;
    std::getline(stream, line);
    return line;
}

std::string caches_of_core() {
    std::string caches;
    for (int index = 0;; index++) {
        const std::string folder = "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index) + "/";
        const std::string level = first_line(folder + "level");
        if (level.empty()) return caches.empty() ? "unknown" : caches;
        if (first_line(folder + "type") == "Instruction") continue;
        caches += (caches.empty() ? "L" : ", L") + level + " " + first_line(folder + "size");
    }
}

} // namespace

HostCpu host_cpu() {
    const std::string model = cpu_fact("model name");
    return {model.empty() ? "unknown model" : model, std::thread::hardware_concurrency(), caches_of_core()};
}

} // namespace scalide

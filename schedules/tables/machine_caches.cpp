#include "schedules/tables/machine_caches.h"
#include <fstream>

namespace scalide {

namespace {

/// Linux describes the caches of a core in files. One of them is "1024K".
std::map<std::string, int64_t> read_caches() {
    std::map<std::string, int64_t> caches;
    for (int index = 0;; index++) {
        const std::string folder = "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index) + "/";
        std::ifstream level(folder + "level"), type(folder + "type"), size(folder + "size");
        std::string name, kind;
        int64_t kibibytes = 0;
        if (!(level >> name)) return caches;
        if (type >> kind && kind != "Instruction" && size >> kibibytes) caches["l" + name] = kibibytes;
    }
}

} // namespace

const std::map<std::string, int64_t> &machine_caches() {
    static const std::map<std::string, int64_t> caches = read_caches();
    return caches;
}

bool is_this_machine(const Halide::Target &target) {
    static const Halide::Target machine = Halide::get_host_target();
    if (target.arch != machine.arch || target.bits != machine.bits || target.has_gpu_feature()) return false;
    for (int i = 0; i < Halide::Target::FeatureEnd; i++) {
        const auto feature = Halide::Target::Feature(i);
        if (machine.has_feature(feature) && !target.has_feature(feature)) return false;
    }
    return true;
}

} // namespace scalide

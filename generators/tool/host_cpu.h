#pragma once
#include <string>

namespace scalide {

/// The CPU of this machine, as the system describes it.
struct HostCpu {
    std::string model;  ///< "AMD EPYC 9354", or "unknown model"
    unsigned threads;   ///< hardware threads
    std::string caches; ///< of one core: "L1 32 KiB, L2 1024 KiB, L3 32768 KiB", or "unknown"
};
HostCpu host_cpu();

} // namespace scalide

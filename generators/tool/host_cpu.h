#pragma once
#include <string>

namespace scalide {

/// The CPU of this machine, as the system describes it.
struct HostCpu {
    std::string model;  ///< "AMD EPYC 9354", or "unknown model"
    unsigned threads;   ///< hardware threads
    std::string caches; ///< of one core: "L1 32K, L2 1024K, L3 32768K", or "unknown"
};
HostCpu host_cpu();

} // namespace scalide

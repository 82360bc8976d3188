#pragma once
#include "emit/kernel_objects.h"
#include <functional>

namespace scalide {

/// Throws UserError if this machine cannot build a library for the target: the C compiler (variable CC) has another target, or a shared
/// library is wanted although the runtime was built for the host.
void check_toolchain(const Halide::Target &target, bool shared_library);

/// Writes `lib<name>.a`, `<name>.h`, `<name>.plan.c` and `<name>.json` (and `lib<name>.so`) to the output folder. The files are written to
/// a temporary folder. After `made` was called with their final paths, they are moved. The archive comes from the cache if it was built
/// before. Throws UserError.
void write_library(const BuiltPrograms &programs, const BuildOptions &options, const KernelObjects &objects, const ObjectCache &cache,
                   const std::function<void(std::vector<std::filesystem::path> files)> &made);

} // namespace scalide

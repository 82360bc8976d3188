#pragma once
#include "emit/kernel_objects.h"
#include <functional>

namespace scalide {

/// Throws UserError when this machine cannot make a library for the target: the C compiler (variable CC) is for another one, or a shared
/// library is asked for where the runtime is of the host.
void check_toolchain(const Halide::Target &target, bool shared_library);

/// Writes `lib<name>.a`, `<name>.h`, `<name>.plan.c` and `<name>.json` (and `lib<name>.so`) to the output folder: made in a folder beside
/// and moved at the end, after `made` was told where they will be. The archive comes from the cache when the same was made before. Throws
/// UserError.
void write_library(const std::vector<Plan> &plans, const std::vector<PreparedProgram> &programs, const BuildOptions &options,
                   const KernelObjects &objects, const ObjectCache &cache,
                   const std::function<void(std::vector<std::filesystem::path> files)> &made);

} // namespace scalide

#pragma once
#include <Halide.h>

namespace scalide {

/// The feature of a target whose CPU has AMX tiles of bf16 and bytes that a process may use. Halide 21 has no feature for tiles:
/// `AVX512_SapphireRapids` also holds for CPUs without them (Zen 5, virtual machines that hide them). On x86 Halide reads no feature of
/// ARM, so one of them is the mark. In texts (targets, keys, tiles.yaml, plans) it is `amx`. Halide refuses a text for x86 that names it.
inline constexpr Halide::Target::Feature amx_feature = Halide::Target::ARMDotProd;

/// Returns the text of a target, in which tiles are the last part, `amx`.
inline std::string target_text(const Halide::Target &target) {
    const bool has_tiles = target.arch == Halide::Target::X86 && target.has_feature(amx_feature);
    return has_tiles ? target.without_feature(amx_feature).to_string() + "-amx" : target.to_string();
}

} // namespace scalide

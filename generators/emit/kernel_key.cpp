#include "emit/kernel_key.h"
#include "emit/cache.h"
#include "ir/text.h"
#include "lower/halide/amx_feature.h"

namespace scalide {

namespace {

std::string sources_of(const std::string &kind, const LoweringHashes &hashes) {
    const auto own = hashes.by_kind.find(kind);
    if (own != hashes.by_kind.end()) return hashes.common + own->second;
    std::string all = hashes.common;
    for (const auto &[other, hash] : hashes.by_kind) all += hash;
    return all;
}

std::string words_of(const Tiles &numbers) {
    std::string words;
    for (const auto &[name, value] : numbers) words += " " + name + "=" + std::to_string(value);
    return words;
}

} // namespace

std::string lowering_key(const Program &kernel, const Halide::Target &target, const LoweringHashes &hashes) {
    const std::string &kind = kernel.attributes.at("kind").word;
    return hash_text(to_string(kernel) + target_text(target) + words_of(choose_budget(kind, target)) + sources_of(kind, hashes) +
                     SCALIDE_HALIDE_VERSION);
}

std::string kernel_key(const std::string &lowering_key, const Tiles &tiles, const std::string &assembly_key) {
    return hash_text(lowering_key + assembly_key + words_of(tiles));
}

} // namespace scalide

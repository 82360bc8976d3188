#include "emit/kernel_key.h"
#include "emit/cache.h"
#include "ir/text.h"

namespace scalide {

namespace {

std::string sources_of(const std::string &kind, const LoweringHashes &hashes) {
    const auto own = hashes.by_kind.find(kind);
    if (own != hashes.by_kind.end()) return hashes.common + own->second;
    std::string all = hashes.common;
    for (const auto &[other, hash] : hashes.by_kind) all += hash;
    return all;
}

} // namespace

std::string lowering_key(const Program &kernel, const Halide::Target &target, const LoweringHashes &hashes) {
    return hash_text(to_string(kernel) + target.to_string() + sources_of(kernel.attributes.at("kind").word, hashes) +
                     SCALIDE_HALIDE_VERSION);
}

std::string kernel_key(const std::string &lowering_key, const Tiles &tiles, const std::string &assembly_key) {
    std::string identity = lowering_key + assembly_key;
    for (const auto &[name, value] : tiles) identity += " " + name + "=" + std::to_string(value);
    return hash_text(identity);
}

} // namespace scalide

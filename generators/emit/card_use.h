#pragma once
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace scalide {

/// What one launch of a kernel uses on one card, as ptxas says.
struct CardUse {
    int card = 0;      ///< compute capability: 80, 89 ...
    std::string entry; ///< of the device code
    int registers = 0, spilled_bytes = 0, shared_bytes = 0;
};

/// Rows of `{"card": 90, "entry": ..., "registers": 32, "spilled_bytes": 0, "shared_bytes": 1024}`.
nlohmann::ordered_json to_json(const std::vector<CardUse> &uses);
/// nullopt for a text that is not one.
std::optional<std::vector<CardUse>> parse_uses(const std::string &json);

} // namespace scalide

#pragma once
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace scalide {

/// The resources of one launch of a kernel on one GPU architecture, as ptxas reports them.
struct CardUse {
    int card = 0;      ///< compute capability: 80, 89 ...
    std::string entry; ///< name of the entry in the device code
    int registers = 0, spilled_bytes = 0, shared_bytes = 0;
};

/// Returns rows such as `{"card": 90, "entry": ..., "registers": 32, "spilled_bytes": 0, "shared_bytes": 1024}`.
nlohmann::ordered_json to_json(const std::vector<CardUse> &uses);
/// Parses the text of to_json(); nullopt for another text.
std::optional<std::vector<CardUse>> parse_uses(const std::string &json);

} // namespace scalide

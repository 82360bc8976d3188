#include "emit/card_use.h"
#include <nlohmann/json.hpp>

namespace scalide {

nlohmann::ordered_json to_json(const std::vector<CardUse> &uses) {
    nlohmann::ordered_json rows = nlohmann::ordered_json::array();
    for (const CardUse &use : uses) {
        rows.push_back({{"card", use.card},
                        {"entry", use.entry},
                        {"registers", use.registers},
                        {"spilled_bytes", use.spilled_bytes},
                        {"shared_bytes", use.shared_bytes}});
    }
    return rows;
}

std::optional<std::vector<CardUse>> parse_uses(const std::string &json) {
    try {
        std::vector<CardUse> uses;
        for (const nlohmann::json &row : nlohmann::json::parse(json)) {
            uses.push_back({row.at("card"), row.at("entry"), row.at("registers"), row.at("spilled_bytes"), row.at("shared_bytes")});
        }
        return uses;
    } catch (const nlohmann::json::exception &) {
        return std::nullopt;
    }
}

} // namespace scalide

#pragma once
#include "schedules/schedule.h"
#include <optional>

namespace scalide {

/// What lowering says about a kernel and a plan has to know: kept beside the object, it saves lowering again.
struct KernelFacts {
    Tiles tiles;
    std::vector<KernelOperand> call_order;
};

std::string to_json(const KernelFacts &facts);
/// nullopt for a text that to_json did not write.
std::optional<KernelFacts> parse_facts(const std::string &json);

} // namespace scalide

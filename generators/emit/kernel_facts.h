#pragma once
#include "schedules/schedule.h"
#include <optional>

namespace scalide {

/// The facts about a kernel that a plan needs and that lowering determines. They are cached, so that the kernel need not be lowered again.
struct KernelFacts {
    Tiles tiles;
    std::vector<KernelOperand> call_order;
};

std::string to_json(const KernelFacts &facts);
/// Parses the text of to_json(); nullopt for another text.
std::optional<KernelFacts> parse_facts(const std::string &json);

} // namespace scalide

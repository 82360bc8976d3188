#pragma once
#include <span>
#include <string_view>

namespace scalide {

/// A function of rule text that is no operator. Its meaning is in instance.cpp.
struct Intrinsic {
    std::string_view name, signature, text; ///< one line for rules/README.md
    int arguments;
    bool needs_parts; ///< only in scale, data and on_plain
};

std::span<const Intrinsic> intrinsics();
const Intrinsic *find_intrinsic(std::string_view name);

} // namespace scalide

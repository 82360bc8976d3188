#pragma once
#include <span>
#include <string_view>

namespace scalide {

/// A function of rule text that is no operator.
struct Intrinsic {
    std::string_view name, signature, text; ///< `text`: one line for the documentation
    int arguments;
    bool needs_parts; ///< allowed only in scale, data and on_plain
};

std::span<const Intrinsic> intrinsics();
const Intrinsic *find_intrinsic(std::string_view name);

} // namespace scalide

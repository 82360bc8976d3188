#include "ir/library_product.h"
#include <algorithm>
#include <array>

namespace scalide {

namespace {

constexpr std::array<std::string_view, 5> scale_layouts = {"none", "outer_vec", "vec128", "blk128x128", "vec32_ue8m0"};

} // namespace

std::string_view to_string(ScaleLayout layout) { return scale_layouts[static_cast<size_t>(layout)]; }

std::optional<ScaleLayout> parse_scale_layout(std::string_view name) {
    const auto *found = std::ranges::find(scale_layouts, name);
    return found == scale_layouts.end() ? std::nullopt : std::optional(static_cast<ScaleLayout>(found - scale_layouts.begin()));
}

} // namespace scalide

#include "transforms/constants/open_regions.h"
#include "ir/regions.h"
#include <algorithm>

namespace scalide {

ValueId Level::captured(ValueId value) const {
    const auto argument = std::ranges::find(program.arguments, value, &Argument::value);
    if (owner == nullptr || argument == program.arguments.end()) return -1;
    return owner->captured_by(region, static_cast<size_t>(argument - program.arguments.begin()));
}

OpenNode::OpenNode(Level &around, Node &opened) : node(opened), outer(around) {
    for (const Region &region : node.regions) regions.push_back(*region);
}

bool OpenNode::is_loop() const { return find_region_kind(node.op)->is_loop; }

/// The test of a `while` reads a carry as an ordinary argument, so the body decides what a capture is.
ValueId OpenNode::captured_by(size_t region, size_t argument) const {
    const bool is_kept = is_capture(regions[region].arguments[argument]) && is_capture(regions.back().arguments[argument]);
    return is_kept ? node.operands[operand_of(node, regions.back(), argument)] : -1;
}

ValueId OpenNode::capture(size_t region, ValueId value) {
    std::vector<ValueId> &inside = captures_[value];
    if (inside.empty()) {
        node.operands.push_back(value);
        for (Program &each : regions) {
            inside.push_back(add_value(each, outer.program.value_name(value), outer.program.type(value)));
            each.arguments.push_back({.value = inside.back()});
        }
    }
    return inside[region];
}

void OpenNode::close() {
    if (captures_.empty()) return;
    erase_unread_arguments(node, regions);
    node.regions.clear();
    for (Program &region : regions) node.regions.push_back(std::make_shared<const Program>(std::move(region)));
}

ValueId bring(const Level &from, ValueId value, Level &to) {
    return &from == &to ? value : to.owner->capture(to.region, bring(from, value, to.owner->outer));
}

} // namespace scalide

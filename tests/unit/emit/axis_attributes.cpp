#include "lower/shapes/axis_attributes.h"
#include "expr/base_operators.h"
#include "rulebook/rulebook.h"
#include <gtest/gtest.h>
#include <set>

namespace scalide {
namespace {

using Kind = AxisAttribute::Kind;

/// What an attribute of this type may say of axes; nothing: it does not speak of them.
std::set<Kind> kinds_of(const AttributeSpec &spec) {
    static const std::map<std::string, std::set<Kind>> kinds = {{"axis", {Kind::axis}},
                                                                {"axes", {Kind::axes}},
                                                                {"permutation", {Kind::permutation}},
                                                                {"integers", {Kind::entries, Kind::embedding}},
                                                                {"shape", {Kind::entries}}};
    const auto found = kinds.find(spec.type);
    return found == kinds.end() || spec.name == "shape" ? std::set<Kind>() : found->second;
}

// An operator that merges axes must say with each list what it says of them; `shape` is that of the result.
TEST(emit, axis_attributes_are_those_of_the_rules) {
    const Rulebook rulebook = Rulebook::load({SCALIDE_RULES_DIR});
    for (const BaseOperator &op : base_operators()) {
        Node node;
        node.op = op.name;
        if (keeps_axes_apart(node)) continue;
        for (const AttributeSpec &spec : rulebook.rule(node.op, {}).attributes) {
            SCOPED_TRACE(node.op + "." + spec.name);
            const AxisAttribute *row = find_axis_attribute(spec.name);
            const std::set<Kind> kinds = kinds_of(spec);
            ASSERT_EQ(row != nullptr, !kinds.empty());
            if (row != nullptr) EXPECT_TRUE(kinds.contains(row->kind));
        }
    }
}

} // namespace
} // namespace scalide

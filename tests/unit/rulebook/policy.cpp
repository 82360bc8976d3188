#include "rulebook/policy.h"
#include <gtest/gtest.h>

using namespace scalide;

TEST(rulebook, reads_a_policy) {
    const Policy policy = parse_policy(R"yaml(
policy: all
doc: Every key.
strategy: max
rounding: nearest
round: every_node
overflow: format
accumulation: fast
precision: tf32
rules:
  - {argument: inout, store: f16, scaled: true}
  - {scope: "head/**", op: dot_general, operand: cotangent, size_below: 64, insert: [{dynamic_rescale: {norm: max, to: 224}}, {convert: f8_e5m2}]}
  - {op: [add, mul], result: any, store: bf16}
  - {result: inout, insert: []}
)yaml",
                                       "p.yaml");
    EXPECT_EQ(policy.name, "all");
    EXPECT_EQ(policy.scales.strategy, "max");
    EXPECT_EQ(policy.scales.rounding, Rounding::nearest);
    EXPECT_TRUE(policy.round_every_node);
    EXPECT_EQ(policy.overflow, Overflow::format);
    EXPECT_TRUE(policy.fast_accumulation);
    EXPECT_TRUE(policy.tf32);
    ASSERT_EQ(policy.rules.size(), 4);
    EXPECT_EQ(policy.rules[0].place, PolicyRule::Place::argument);
    EXPECT_EQ(policy.rules[0].store, Dtype::f16);
    EXPECT_EQ(policy.rules[0].scaled, true);
    EXPECT_EQ(policy.rules[0].location.line, 11);
    EXPECT_EQ(policy.rules[1].place, PolicyRule::Place::operand);
    EXPECT_EQ(policy.rules[1].which, "cotangent");
    EXPECT_EQ(policy.rules[1].scope, "head/**");
    EXPECT_EQ(policy.rules[1].size_below, 64);
    ASSERT_EQ(policy.rules[1].insert.size(), 2);
    EXPECT_EQ(to_string(policy.rules[1].insert[0].attributes), "{norm: max, to: 224}");
    EXPECT_EQ(policy.rules[1].insert[1].op, "convert_element_type");
    EXPECT_EQ(to_string(policy.rules[1].insert[1].attributes), "{dtype: f8_e5m2}");
    EXPECT_EQ(policy.rules[2].place, PolicyRule::Place::node_result);
    EXPECT_EQ(policy.rules[2].ops, (std::vector<std::string>{"add", "mul"}));
    EXPECT_EQ(policy.rules[3].place, PolicyRule::Place::program_result);
}

TEST(rulebook, our_policies_load) {
    for (const char *name : {"f32", "bf16", "f16_scaled", "f8_scaled"}) {
        const Policy policy = load_policy(std::string(SCALIDE_RULES_DIR) + "/policies/" + name + ".yaml");
        EXPECT_EQ(policy.name, name);
        EXPECT_EQ(policy.rules.empty(), policy.name == "f32");
        EXPECT_EQ(policy.overflow, policy.name.ends_with("_scaled") ? Overflow::saturate : Overflow::format) << name;
    }
    EXPECT_THROW(load_policy("nowhere.yaml"), UserError);
}

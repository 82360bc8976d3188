#include "rulebook/policy.h"
#include "support/folder.h"
#include <fstream>
#include <gtest/gtest.h>
#include <set>

using namespace scalide;
namespace fs = std::filesystem;

namespace {

const fs::path ours = fs::path(SCALIDE_RULES_DIR) / "policies";

/// A folder of policy files that goes with the test.
class PolicyFolder {
public:
    fs::path write(const std::string &name, const std::string &yaml) const {
        std::ofstream(folder_.path / name) << yaml;
        return folder_.path / name;
    }

private:
    test::Folder folder_;
};

std::string error_of(const fs::path &file) {
    try {
        load_policy(file, ours);
    } catch (const UserError &error) {
        Message message = error.message();
        message.location = {}; // in a folder that has another name in each run
        return UserError(message).what();
    }
    return "no error";
}

} // namespace

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
arithmetic: exact
rules:
  - {argument: inout, store: f16, scaled: true}
  - {scope: "head/**", op: dot_general, operand: cotangent, size_below: 64, insert: [{dynamic_rescale: {norm: max, to: 224}}, {convert: f8_e5m2}]}
  - {op: [add, mul], result: any, store: bf16}
  - {result: inout, insert: [], optional: true}
)yaml",
                                       "p.yaml");
    EXPECT_EQ(policy.name, "all");
    EXPECT_EQ(policy.scales.strategy, "max");
    EXPECT_EQ(policy.scales.rounding, Rounding::nearest);
    EXPECT_TRUE(policy.round_every_node);
    EXPECT_EQ(policy.overflow, Overflow::format);
    EXPECT_TRUE(policy.fast_accumulation);
    EXPECT_TRUE(policy.tf32);
    EXPECT_TRUE(policy.exact_arithmetic);
    ASSERT_EQ(policy.rules.size(), 4);
    EXPECT_EQ(policy.rules[0].place, PolicyRule::Place::argument);
    EXPECT_EQ(policy.rules[0].store, Dtype::f16);
    EXPECT_EQ(policy.rules[0].scaled, true);
    EXPECT_EQ(policy.rules[0].location.line, 12);
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
    EXPECT_TRUE(policy.rules[3].optional);
    EXPECT_FALSE(policy.rules[2].optional);
}

TEST(rulebook, a_row_gives_a_scale) {
    const auto read = [](const std::string &row) {
        const PolicyRule rule = parse_policy("{policy: p, rules: [" + row + "]}", "p.yaml").rules.at(0);
        std::string text;
        for (const auto &[op, attributes] : rule.insert) text += op + " " + to_string(attributes) + " ";
        return text + (rule.scaled ? "scaled" : "");
    };
    EXPECT_EQ(read("{operand: any, scale: {by: max}, store: f8_e4m3fn}"), "dynamic_rescale {norm: max, to: 224} ");
    EXPECT_EQ(read("{operand: any, scale: {by: l2, to: 0.5}, store: f8_e4m3fn}"), "dynamic_rescale {norm: l2, to: 0.5} ");
    EXPECT_EQ(read("{operand: any, scale: {by: bound}, insert: [{hashed_round: {dtype: f16}}]}"),
              "dynamic_rescale {norm: bound, to: 32752} hashed_round {dtype: f16} ")
        << "before what rounds, whose format it fills";
    EXPECT_EQ(read("{op: exp, result: any, scale: {by: max}, store: bf16}"), "dynamic_rescale {norm: max} ")
        << "a format with the range of f32";
    EXPECT_EQ(read("{result: y, scale: {by: max}, store: f8_e5m2}"), "dynamic_rescale {norm: max, to: 28672} scaled");
}

TEST(rulebook, a_row_replaces_an_operator) {
    const PolicyRule row =
        parse_policy("{policy: p, rules: [{op: dot_general, operands: [any, weight], replace: {scaled_dot_general: {block: 32}}}]}",
                     "p.yaml")
            .rules.at(0);
    EXPECT_EQ(row.place, PolicyRule::Place::node);
    EXPECT_EQ(row.operands, (std::vector<std::string>{"any", "weight"}));
    ASSERT_TRUE(row.replacement.has_value());
    EXPECT_EQ(row.replacement->op + " " + to_string(row.replacement->attributes), "scaled_dot_general {block: 32}");
    EXPECT_EQ(parse_policy("{policy: p, rules: [{op: dot_general, operands: primal}]}", "p.yaml").rules.at(0).replacement.has_value(),
              false)
        << "the node stays";
}

TEST(rulebook, our_policies_load) {
    EXPECT_GE(policy_names(ours).size(), 4);
    for (const std::string &name : policy_names(ours)) {
        const Policy policy = load_policy(ours / (name + ".yaml"), ours);
        EXPECT_FALSE(policy.doc.empty()) << name;
        EXPECT_EQ(policy.name, name);
        EXPECT_EQ(policy.rules.empty(), policy.name == "f32");
        const bool has_scales = !std::set<std::string>{"f32", "bf16", "amp_f16", "amp_bf16"}.contains(name);
        EXPECT_EQ(policy.overflow, has_scales ? Overflow::saturate : Overflow::format) << name;
    }
    EXPECT_THROW(load_policy("nowhere.yaml"), UserError);
}

TEST(rulebook, a_policy_extends_another) {
    const PolicyFolder folder;
    folder.write("middle.yaml", "{policy: middle, doc: Words., extends: f8_scaled, strategy: max, rules: [{argument: x, store: f16}]}");
    const Policy policy = load_policy(folder.write("own.yaml", "{policy: own, extends: middle.yaml, overflow: format,\n"
                                                               " rules: [{argument: y, store: f32}]}"),
                                      ours);
    const Policy base = load_policy(ours / "f8_scaled.yaml", ours);
    EXPECT_EQ(policy.name, "own");
    EXPECT_EQ(policy.doc, "") << "words are about the file that they stand in";
    EXPECT_EQ(policy.scales.strategy, "max") << "inherited";
    EXPECT_EQ(policy.overflow, Overflow::format) << "overridden";
    ASSERT_EQ(policy.rules.size(), base.rules.size() + 2);
    EXPECT_EQ(policy.rules[0].which, "y");
    EXPECT_FALSE(policy.rules[0].inherited);
    EXPECT_EQ(policy.rules[1].which, "x");
    EXPECT_TRUE(policy.rules[1].inherited);
    EXPECT_EQ(policy.rules[2].location.file, base.rules[0].location.file);
    EXPECT_TRUE(policy.rules[2].inherited);
    EXPECT_EQ(load_policy(folder.write("plain.yaml", "{policy: plain, extends: f8_scaled}"), ours).rules.size(), base.rules.size());
}

TEST(rulebook, a_policy_extends_what_is_there_once) {
    const PolicyFolder folder;
    EXPECT_EQ(error_of(folder.write("own.yaml", "{policy: own, extends: own.yaml, rules: []}")),
              "policy.extends: a policy must not extend itself, got 'own.yaml'");
    folder.write("b.yaml", "{policy: b, extends: a.yaml}");
    EXPECT_EQ(error_of(folder.write("a.yaml", "{policy: a, extends: b.yaml}")),
              "policy.extends: a policy must not extend itself, got 'a.yaml'");
    EXPECT_EQ(error_of(folder.write("c.yaml", "{policy: c, extends: nowhere.yaml}")),
              "unknown policy 'nowhere.yaml'. No such file next to this one");
    EXPECT_EQ(error_of(folder.write("f8_scaled.yaml", "{policy: mine, extends: f8_scaled}")), "no error") << "ours, not itself";
    EXPECT_EQ(error_of(folder.write("d.yaml", "{policy: d}")), "policy.rules: missing key");
}

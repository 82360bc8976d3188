#include "rulebook/rulebook.h"
#include <gtest/gtest.h>

using namespace scalide;

namespace {

const char *mul = R"(
op: mul
family: elementwise
operands: {x: T number, y: T number}
value: base
scale: x.scale * y.scale
data: self(x.data, y.data)
grad: {x: ct * y, y: ct * x}
check: {cases: [{x: [m, n], y: [m, n]}]}
)";

} // namespace

TEST(rulebook, reads_every_key) {
    Rulebook rulebook;
    rulebook.add(mul, "mul.yaml");
    rulebook.add(R"yaml(
op: power
family: elementwise
doc: Words.
operands: {x: T float, rest: any...}
attrs: {p: {type: number, default: 2}, norm: {type: word, of: [max, l1]}, axes: axes}
results:
  values: {like: x}
  count: {dtype: i32, shape: "drop(x, axes)", plain: true}
where: {c1: {require: "rank(x) == 2", say: must be a matrix}}
let: {s: x * x}
value: {values: s * p, count: x}
scale: {l2: {values: x.scale * x.scale}, max: {values: x.scale}}
data: {values: x.data}
on_plain: {count: x.data}
grad: {x: ct.values * x}
check:
  domain: {x: [-1, 1]}
  kinks: {x: [0]}
  tolerance: {f32: 1e-6}
  gradient: straight_through
  cases: [{x: [m, 4], rest: [[m], [4]], axes: [1], norm: max}]
  vectors: [{x: 2, values: [4, 5], axes: [0]}]
compat: none
)yaml",
                 "power.yaml");
    const Rule &rule = *rulebook.find("power");
    EXPECT_EQ(rule.location.line, 2);
    EXPECT_TRUE(rule.operands[1].variadic);
    EXPECT_EQ(rule.operands[0].letter, "T");
    EXPECT_EQ(rule.attributes[1].choices, (std::vector<std::string>{"max", "l1"}));
    EXPECT_EQ(rule.attributes[0].default_value, Attribute(2));
    EXPECT_EQ(rule.results[0].like, "x");
    EXPECT_TRUE(rule.results[1].plain);
    EXPECT_EQ(to_string(rule.results[1].shape), "drop(x, axes)");
    EXPECT_EQ(rule.constraints[0].id, "c1");
    EXPECT_EQ(to_string(rule.value[0]), "s * p");
    EXPECT_EQ(to_string(rule.scale_of("max")[0]), "x.scale");
    EXPECT_EQ(to_string(rule.scale_of("unit")[0]), "x.scale * x.scale");
    EXPECT_EQ(rule.scale_of("max")[1], nullptr);
    EXPECT_EQ(rule.data[1], nullptr);
    EXPECT_EQ(rule.on_plain[0], nullptr);
    EXPECT_EQ(rule.gradient_kind, GradientKind::expressions);
    EXPECT_EQ(rule.check.cases[0].shapes.at("rest").size(), 2);
    EXPECT_EQ(rule.check.vectors[0].scalars, (std::set<std::string>{"x"}));
    EXPECT_EQ(rule.check.domain.at("x"), (std::pair<double, double>{-1, 1}));
}

TEST(rulebook, finds_rules_by_family_and_name) {
    Rulebook rulebook;
    rulebook.add(mul, "mul.yaml");
    EXPECT_EQ(rulebook.find("add"), nullptr);
    EXPECT_EQ(rulebook.rules().size(), 1);
    try {
        rulebook.rule("mull", {"a.scl", 7, 3});
        FAIL();
    } catch (const UserError &error) {
        EXPECT_STREQ(error.what(),
                     "a.scl:7:3: unknown operator 'mull'. Did you mean 'mul'? Otherwise add a rule file, see docs/reference/rules.md");
    }
}

TEST(rulebook, a_text_with_a_mistake_adds_nothing) {
    Rulebook rulebook;
    EXPECT_THROW(rulebook.add(std::string(mul) + "---\nop: half", "a.yaml"), UserError);
    EXPECT_EQ(rulebook.find("mul"), nullptr);
}

TEST(rulebook, gradient_left_out) {
    Rulebook rulebook;
    rulebook.add(mul, "mul.yaml");
    rulebook.add("op: square\nfamily: composite\noperands: {x: number}\nvalue: x * x", "a.yaml");
    EXPECT_EQ(rulebook.find("square")->gradient_kind, GradientKind::derived);
    rulebook.add(
        "op: eq\nfamily: composite\noperands: {x: any, y: any}\nresults: {out: {dtype: bool, shape: shape(x), plain: true}}\nvalue: base",
        "a.yaml");
    EXPECT_EQ(rulebook.find("eq")->gradient_kind, GradientKind::none);
}

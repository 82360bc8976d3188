#include "rulebook/instance.h"
#include "ir/rewrite.h"
#include "ir/text.h"
#include "ir/verify.h"
#include <algorithm>
#include <gtest/gtest.h>
#include <set>

using namespace scalide;

namespace {

const Rulebook &our_rules() {
    static const Rulebook rules = Rulebook::load({SCALIDE_RULES_DIR});
    return rules;
}

/// One operator on arguments x0, x1 ..., in a program that grows with what is asked of the instance.
struct Bench {
    Program program;
    Builder builder{our_rules(), program};
    const Rule &rule;
    std::vector<ScaledValue> operands;
    Attributes attributes;

    Bench(const Bench &) = delete;
    Bench(const std::string &op, Attributes attributes) : rule(our_rules().rule(op, {})), attributes(std::move(attributes)) {
        program.name = "p";
        for (const char *symbol : {"a", "b", "j", "k", "m", "n"}) program.symbols.push_back({symbol});
    }

    ValueId argument(const std::string &name, const Type &type) {
        program.arguments.push_back({add_value(program, name, type)});
        return program.arguments.back().value;
    }
    Bench &plain(const Type &type) {
        operands.push_back({argument("x" + std::to_string(operands.size()), type)});
        return *this;
    }
    Bench &scaled(const Type &type) {
        const std::string name = "x" + std::to_string(operands.size());
        const ValueId data = argument(name + ".data", type);
        operands.push_back({-1, data, argument(name + ".scale", {})});
        return *this;
    }
    Bench &plain(const char *type) { return plain(parse_type(type, {})); }
    Bench &scaled(const char *type) { return scaled(parse_type(type, {})); }

    Instance instance(ScaleSettings settings = {}) { return Instance(builder, rule, operands, attributes, settings); }
    void result(ValueId value) { program.results.push_back({"r" + std::to_string(program.results.size()), value}); }

    std::vector<std::string> ops() {
        const Program live = remove_dead_nodes(program);
        verify(live, "instance");
        std::vector<std::string> ops;
        for (const Node &node : live.nodes)
            if (node.op != "constant") ops.push_back(node.op);
        return ops;
    }
};

using Ops = std::vector<std::string>;

Attribute list(const char *text) { return parse_attribute(text, {}); }

/// Symbols in attributes of a check case are extents.
Attributes with_extents(const Rule &rule, Attributes attributes) {
    for (const AttributeSpec &spec : rule.attributes) {
        if (!attributes.contains(spec.name) || spec.type != "shape") continue;
        for (Attribute &element : attributes[spec.name].list)
            if (element.kind == Attribute::Kind::word) element = parse_extent(element.word, {});
    }
    return attributes;
}

Dtype dtype_for(OperandClass operand_class) {
    if (operand_class == OperandClass::boolean) return Dtype::boolean;
    if (operand_class == OperandClass::bits) return Dtype::u32;
    return operand_class == OperandClass::integer || operand_class == OperandClass::index ? Dtype::i32 : Dtype::f32;
}

/// The operands of a check case with symbolic extents.
void add_operands(Bench &bench, const CheckCase &check_case, bool (*scaled)(Dtype)) {
    const Rule &rule = bench.rule;
    for (const OperandSpec &spec : rule.operands) {
        for (const std::vector<std::string> &letters : check_case.shapes.at(spec.name)) {
            Type type{rule.op == "select_n" && spec.name == "which" ? Dtype::i32 : dtype_for(spec.operand_class), {}};
            for (const std::string &letter : letters) type.shape.push_back(parse_extent(letter, {}));
            scaled(type.dtype) ? bench.scaled(type) : bench.plain(type);
        }
    }
}

bool never(Dtype) { return false; }

bool takes_no_floats(const Rule &rule) {
    const std::set<std::string> ops{"and",        "or",          "xor",        "not",         "reduce_and",  "reduce_or",
                                    "reduce_xor", "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not", "narrow_index"};
    return ops.contains(rule.op);
}

void ask_for_everything(const Rule &rule, const CheckCase &check_case) {
    Bench plain(rule.op, with_extents(rule, check_case.attributes));
    add_operands(plain, check_case, never);
    std::vector<ValueId> flat;
    for (const ScaledValue &operand : plain.operands) flat.push_back(operand.value);
    const std::vector<ValueId> outs = plain.builder.add(rule.op, flat, plain.attributes);
    const std::vector<ValueId> values = plain.instance().value();
    ASSERT_EQ(values.size(), outs.size());
    for (size_t i = 0; i < outs.size(); i++) {
        EXPECT_EQ(to_string(plain.builder.type(values[i])), to_string(plain.builder.type(outs[i])));
        plain.result(values[i]);
    }
    for (size_t i = 0; i < flat.size() && rule.gradient_kind == GradientKind::expressions; i++) {
        const auto spoken_of = rule.gradient.find(rule.operands[std::min(i, rule.operands.size() - 1)].name);
        if (spoken_of != rule.gradient.end() && spoken_of->second == nullptr) continue; // refused
        const ValueId gradient = plain.instance().gradient(static_cast<int>(i), outs, outs);
        if (gradient < 0) continue;
        EXPECT_EQ(to_string(plain.builder.type(gradient)), to_string(plain.builder.type(flat[i])));
        plain.result(gradient);
    }
    plain.ops();
    if (!rule.has_scale("l2") && !rule.is_plain()) return;
    Bench scaled(rule.op, with_extents(rule, check_case.attributes));
    add_operands(scaled, check_case, is_float);
    Instance instance = scaled.instance();
    for (size_t i = 0; i < rule.results.size(); i++) {
        const int result = static_cast<int>(i);
        if (rule.results[i].plain) {
            scaled.result(instance.plain(result));
            continue;
        }
        scaled.result(instance.scale(result));
        EXPECT_EQ(to_string(scaled.builder.type(scaled.program.results.back().value)), "f32[]");
        scaled.result(instance.data(result, scaled.program.results.back().value));
        EXPECT_EQ(to_string(scaled.builder.type(scaled.program.results.back().value)), to_string(plain.builder.type(outs[i])));
    }
    scaled.ops();
}

} // namespace

TEST(rulebook, every_rule_becomes_nodes_of_its_types) {
    for (const Rule *rule : our_rules().rules()) {
        if (takes_no_floats(*rule)) continue;
        for (const CheckCase &check_case : rule->check.cases) {
            SCOPED_TRACE(rule->op + " " + to_string(check_case.attributes));
            try {
                ask_for_everything(*rule, check_case);
            } catch (const std::exception &error) {
                ADD_FAILURE() << error.what();
            }
        }
    }
}

TEST(rulebook, a_scale_that_is_passed_on_stays_the_same_value) {
    Bench bench("neg", {});
    bench.scaled("f32[b]");
    Instance instance = bench.instance();
    const ValueId scale = instance.scale(0);
    EXPECT_EQ(scale, bench.operands[0].scale);
    bench.result(instance.data(0, scale));
    EXPECT_EQ(bench.ops(), (Ops{"neg"}));
}

TEST(rulebook, scales_are_clamped_and_data_makes_up_for_it) {
    Bench bench("mul", {});
    bench.scaled("f32[b]").scaled("f32[b]");
    Instance instance = bench.instance();
    const ValueId scale = instance.scale(0);
    bench.result(scale);
    EXPECT_EQ(bench.ops(), (Ops{"convert_element_type", "convert_element_type", "mul", "clamp_scale", "convert_element_type"}));
    bench.program.results.clear();
    bench.result(instance.data(0, scale));
    EXPECT_EQ(bench.ops(), (Ops{"convert_element_type", "convert_element_type", "mul", "clamp_scale", "mul", "eq", "div", "select_n",
                                "convert_element_type", "broadcast_in_dim", "mul"}));
}

TEST(rulebook, constant_scales_are_folded_and_clamped) {
    Rulebook rules = our_rules();
    rules.add("op: huge\nfamily: composite\noperands: {x: float}\nvalue: x\nscale: 8 * 16\ndata: x.data / (8 * 16)", "huge.yaml");
    Bench bench("neg", {});
    bench.plain("f32[2]");
    Builder builder(rules, bench.program);
    Instance instance(builder, *rules.find("huge"), bench.operands, {});
    const ValueId scale = instance.scale(0);
    bench.result(scale);
    EXPECT_TRUE(bench.ops().empty());
    EXPECT_EQ(to_number(bench.program.nodes.back().attributes.at("value")), 128);
    bench.program.results.clear();
    bench.result(instance.data(0, scale));
    EXPECT_EQ(bench.ops(), (Ops{"broadcast_in_dim", "div"}));
}

TEST(rulebook, rounding_chooses_the_operator) {
    for (const auto &[rounding, op] : std::map<Rounding, std::string>{
             {Rounding::down, "pow2_down"}, {Rounding::up, "pow2_up"}, {Rounding::nearest, "pow2_nearest"}, {Rounding::none, ""}}) {
        Bench bench("add", {});
        bench.scaled("f32[b]").scaled("f32[b]");
        bench.result(bench.instance({"l2", rounding}).scale(0));
        const Ops ops = bench.ops();
        const auto rounds = std::ranges::count_if(ops, [](const std::string &name) { return name.starts_with("pow2"); });
        EXPECT_EQ(rounds, rounding == Rounding::none ? 0 : 1);
        EXPECT_EQ(std::ranges::count(ops, op), rounding == Rounding::none ? 0 : 1);
        EXPECT_EQ(parse_rounding(to_string(rounding)), rounding);
    }
    EXPECT_EQ(parse_rounding("sideways"), std::nullopt);
}

TEST(rulebook, strategies_choose_the_scale) {
    Bench bench("add", {});
    bench.scaled("f32[b]").scaled("f32[b]");
    bench.result(bench.instance({"max", Rounding::down}).scale(0));
    const Ops ops = bench.ops();
    EXPECT_EQ(std::ranges::count(ops, "sqrt"), 0);
    EXPECT_EQ(std::ranges::count(ops, "max"), 1);
}

TEST(rulebook, a_plain_operand_has_scale_one) {
    Bench bench("mul", {});
    bench.scaled("f32[b]").plain("f32[b]");
    Instance instance = bench.instance();
    bench.result(instance.data(0, instance.scale(0)));
    const Node &last_mul = *std::ranges::find_if(
        bench.program.nodes, [&](const Node &node) { return node.op == "mul" && !bench.builder.type(node.results[0]).is_scalar(); });
    EXPECT_EQ(last_mul.operands, (std::vector<ValueId>{bench.operands[0].data, bench.operands[1].value}));
}

TEST(rulebook, reductions_keep_their_axes_without_nodes) {
    Bench softmax("softmax", {{"axes", list("[1]")}});
    softmax.plain("f32[m, n]");
    softmax.result(softmax.instance().value()[0]);
    EXPECT_EQ(softmax.ops(),
              (Ops{"reduce_max", "stop_gradient", "broadcast_in_dim", "sub", "exp", "reduce_sum", "broadcast_in_dim", "div"}));

    Bench logsumexp("logsumexp", {{"axes", list("[0]")}});
    logsumexp.plain("f32[m, n]");
    logsumexp.result(logsumexp.instance().value()[0]);
    EXPECT_EQ(std::ranges::count(logsumexp.ops(), "reshape"), 0);
    EXPECT_EQ(logsumexp.ops().back(), "add");
}

TEST(rulebook, sizes_that_a_binding_decides_are_nodes) {
    Bench fixed("mean", {{"axes", list("[1]")}});
    fixed.plain("f32[b, 4]");
    fixed.result(fixed.instance().value()[0]);
    EXPECT_EQ(fixed.ops(), (Ops{"reduce_sum", "broadcast_in_dim", "div"}));

    Bench symbolic("mean", {{"axes", list("[0]")}});
    symbolic.plain("f32[b, 4]");
    symbolic.result(symbolic.instance().value()[0]);
    EXPECT_EQ(symbolic.ops(), (Ops{"reduce_sum", "size", "broadcast_in_dim", "div"}));
}

TEST(rulebook, expressions_over_variadic_operands_are_made_for_each) {
    Bench bench("concatenate", {{"dimension", 0}});
    bench.scaled("f32[m]").scaled("f32[n]").scaled("f32[k]");
    Instance instance = bench.instance();
    bench.result(instance.scale(0));
    EXPECT_EQ(std::ranges::count(bench.ops(), "max"), 2);
    bench.program.results.clear();
    bench.result(instance.data(0, instance.scale(0)));
    EXPECT_EQ(bench.ops().back(), "concatenate");
    EXPECT_EQ(to_string(bench.builder.type(bench.program.results[0].value)), "f32[k + m + n]");
}

TEST(rulebook, gradient_of_a_variadic_operand_knows_its_number) {
    Bench bench("select_n", {});
    bench.plain("i32[n]").plain("f32[n]").plain("f32[n]").plain("f32[n]");
    const ValueId ct = bench.argument("ct", parse_type("f32[n]", {}));
    bench.result(bench.instance().gradient(3, {1}, {ct}));
    EXPECT_EQ(bench.ops(),
              (Ops{"broadcast_in_dim", "broadcast_in_dim", "clamp", "broadcast_in_dim", "eq", "broadcast_in_dim", "select_n"}));
    std::vector<std::string> numbers; // the first case, the last one, which is this one, and no gradient
    for (const Node &node : bench.program.nodes)
        if (node.op == "constant") numbers.push_back(to_string(node.attributes.at("value")));
    EXPECT_EQ(numbers, (std::vector<std::string>{"0", "2", "0.0"}));
    EXPECT_EQ(bench.instance().gradient(0, {1}, {ct}), -1);
}

TEST(rulebook, a_word_chooses_the_operator) {
    for (const char *norm : {"max", "l1", "l2"}) {
        Bench bench("dynamic_rescale", {{"norm", norm}});
        bench.scaled("f32[b, 4]");
        Instance instance = bench.instance();
        const ValueId scale = instance.scale(0);
        bench.result(scale);
        bench.result(instance.data(0, scale));
        const Ops ops = bench.ops();
        EXPECT_EQ(std::ranges::count(ops, std::string("norm_") + norm), 1) << "scale and data share it";
    }
}

TEST(rulebook, narrow_operands_of_a_full_value_are_widened) {
    Bench bench("exp", {});
    bench.scaled("f8_e4m3fn[b]");
    Instance instance = bench.instance();
    bench.result(instance.data(0, instance.scale(0)));
    EXPECT_EQ(bench.ops()[0], "convert_element_type");
}

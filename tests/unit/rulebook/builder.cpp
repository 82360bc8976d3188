#include "rulebook/builder.h"
#include "ir/text.h"
#include <gtest/gtest.h>

using namespace scalide;

namespace {

const Rulebook &our_rules() {
    static const Rulebook rules = Rulebook::load({SCALIDE_RULES_DIR});
    return rules;
}

/// Types of the results of `op`, or the message.
std::string inferred(const std::string &op, const std::vector<std::string> &operands, Attributes attributes = {}) {
    std::vector<Type> types;
    for (const std::string &operand : operands) types.push_back(parse_type(operand, {}));
    try {
        std::string text;
        for (const Type &type : infer_result_types(our_rules().rule(op, {}), types, attributes, {"p.scl", 3}))
            text += (text.empty() ? "" : ", ") + to_string(type);
        return text;
    } catch (const UserError &error) {
        return error.what();
    }
}

Attribute list(const char *text) { return parse_attribute(text, {}); }

} // namespace

TEST(rulebook, infers_types) {
    EXPECT_EQ(inferred("exp", {"f16[b, 4]"}), "f16[b, 4]");
    EXPECT_EQ(inferred("lt", {"f32[b]", "f32[b]"}), "bool[b]");
    EXPECT_EQ(inferred("select_n", {"bool[]", "f16[b]", "f16[b]"}), "f16[b]");
    EXPECT_EQ(inferred("reduce_sum", {"f32[a, b, 3]"}, {{"axes", list("[-1, 0]")}}), "f32[b]");
    EXPECT_EQ(inferred("argmax", {"f32[a, b]"}, {{"axis", -1}}), "i32[a]");
    EXPECT_EQ(inferred("transpose", {"f32[a, b, 3]"}, {{"permutation", list("[2, 0, 1]")}}), "f32[3, a, b]");
    EXPECT_EQ(inferred("reshape", {"f32[a, 6]"}, {{"shape", list("[3, 2*a]")}}), "f32[3, 2*a]");
    EXPECT_EQ(inferred("broadcast_in_dim", {"f32[3]"}, {{"shape", list("[b, 3]")}, {"dims", list("[1]")}}), "f32[b, 3]");
    EXPECT_EQ(inferred("slice", {"f32[b, 9]"}, {{"start", list("[0, 1]")}, {"limit", list("[b, 8]")}, {"strides", list("[1, 3]")}}),
              "f32[b, 3]");
    EXPECT_EQ(inferred("slice", {"f32[b]"}, {{"start", list("[0]")}, {"limit", list("[7]")}}), "f32[7]"); // expand() needs b >= 7
    EXPECT_EQ(inferred("pad", {"f32[b, 4]", "f32[]"}, {{"low", list("[1, 0]")}, {"high", list("[0, -1]")}, {"interior", list("[0, 2]")}}),
              "f32[b + 1, 9]");
    EXPECT_EQ(inferred("concatenate", {"f32[a, 4]", "f32[b, 4]", "f32[1, 4]"}, {{"dimension", 0}}), "f32[a + b + 1, 4]");
    EXPECT_EQ(inferred("squeeze", {"f32[b, 1, 4]"}, {{"dimensions", list("[1]")}}), "f32[b, 4]");
    EXPECT_EQ(inferred("expand_dims", {"f32[b, 4]"}, {{"dimensions", list("[-1, 0]")}}), "f32[1, b, 4, 1]");
    EXPECT_EQ(inferred("dot_general", {"f16[g, m, k]", "f16[g, n, k]"}, {{"contract", list("[[2], [2]]")}, {"batch", list("[[0], [0]]")}}),
              "f16[g, m, n]");
    EXPECT_EQ(inferred("dot_general", {"f8_e4m3fn[m, k]", "f8_e5m2[k, n]"}, {{"contract", list("[[1], [0]]")}, {"preferred", "bf16"}}),
              "bf16[m, n]");
    EXPECT_EQ(inferred("dot_general", {"f8_e4m3fn[m, k]", "f8_e5m2[k, n]"}, {{"contract", list("[[1], [0]]")}}), "f32[m, n]");
    EXPECT_EQ(inferred("iota", {}, {{"shape", list("[b, 3]")}, {"dimension", 1}}), "i32[b, 3]");
    EXPECT_EQ(inferred("one_hot", {"i32[b]"}, {{"num_classes", 10}, {"dtype", "f16"}}), "f16[b, 10]");
    EXPECT_EQ(inferred("get_data_scale", {"f16[b]"}), "f16[b], f32[]");
}

TEST(rulebook, completes_attributes) {
    Attributes attributes = {{"axes", list("[-1, 0]")}};
    infer_result_types(our_rules().rule("reduce_sum", {}), {parse_type("f32[2, 3]", {})}, attributes, {});
    EXPECT_EQ(to_string(attributes), "{axes: [0, 1]}");
    attributes = {{"contract", list("[[-1], [0]]")}};
    infer_result_types(our_rules().rule("dot_general", {}), {parse_type("f16[2, 3]", {}), parse_type("f16[3]", {})}, attributes, {});
    EXPECT_EQ(to_string(attributes), "{batch: [[], []], contract: [[1], [0]], preferred: f16}");
    const Rule &convert = our_rules().rule("convert_element_type", {});
    for (const Attributes &optional : {Attributes{{"dtype", "f16"}}, Attributes{{"dtype", "f16"}, {"overflow", "format"}}}) {
        attributes = optional;
        infer_result_types(convert, {parse_type("f32[2]", {})}, attributes, {});
        EXPECT_EQ(attributes, optional);
    }
}

TEST(rulebook, operands_that_do_not_fit) {
    EXPECT_EQ(inferred("add", {"f32[2]"}), "p.scl:3: add.operands: the number of operands must be 2, got 1");
    EXPECT_EQ(inferred("concatenate", {}, {{"dimension", 0}}),
              "p.scl:3: concatenate.operands: the number of operands must be at least 1, got 0");
    EXPECT_EQ(inferred("exp", {"i32[2]"}), "p.scl:3: exp.operands.x: must be a float, got i32[2]. convert_element_type converts an array");
    EXPECT_EQ(
        inferred("add", {"f32[2]", "f16[2]"}),
        "p.scl:3: add.operands.y: must have the dtype of the previous operands, f32, got f16[2]. convert_element_type converts an array");
    EXPECT_EQ(inferred("add", {"f32[2]", "f32[3]"}), "p.scl:3: add: operands must have the same shape, got f32[2], f32[3]");
    EXPECT_EQ(inferred("dot_general", {"f32[2, 5]", "f32[6, 3]"}, {{"contract", list("[[1], [0]]")}}),
              "p.scl:3: dot_general: contracting extents must match, got [5] and [6]. "
              "'contract' names the axes. Transpose an operand, or name other axes");
    EXPECT_EQ(inferred("squeeze", {"f32[2, b]"}, {{"dimensions", list("[1]")}}),
              "p.scl:3: squeeze: squeezed extents must be 1, got b and 1");
    EXPECT_EQ(inferred("dot_general", {"f32[b, n]", "f32[m, 3]"}, {{"contract", list("[[1], [0]]")}}),
              "p.scl:3: dot_general: contracting extents must match, got [n] and [m]. If n and m are one size, use one name for both");
    EXPECT_EQ(inferred("dot_general", {"f32[b, n]", "f32[5, 3]"}, {{"contract", list("[[1], [0]]")}}),
              "p.scl:3: dot_general: contracting extents must match, got [n] and [5]. If n and 5 are one size, write the number for both");
    EXPECT_EQ(inferred("top_k", {"f32[b, 10]"}, {{"k", 11}}),
              "p.scl:3: top_k: k must be at most the extent of the axis, got f32[b, 10], axis: 1, k: 11");
    EXPECT_EQ(inferred("slice", {"f32[b + 9]"}, {{"start", list("[8]")}, {"limit", list("[7]")}}),
              "p.scl:3: slice.results.out.shape: must have 0 <= start <= limit <= extent, got 8, 7, b + 9");
}

TEST(rulebook, attributes_that_do_not_fit) {
    EXPECT_EQ(inferred("reduce_sum", {"f32[2]"}), "p.scl:3: reduce_sum.axes: missing attribute");
    EXPECT_EQ(inferred("reduce_sum", {"f32[2]"}, {{"axis", 0}}), "p.scl:3: unknown attribute 'reduce_sum.axis'. Did you mean 'axes'?");
    EXPECT_EQ(inferred("reduce_sum", {"f32[2]"}, {{"axes", 0}}), "p.scl:3: reduce_sum.axes: must be a list of axes, got 0");
    EXPECT_EQ(inferred("reduce_sum", {"f32[2]"}, {{"axes", list("[1]")}}),
              "p.scl:3: reduce_sum.axes: axes must be less than the rank 1, got 1");
    EXPECT_EQ(inferred("reduce_sum", {"f32[2, 2]"}, {{"axes", list("[1, -1]")}}),
              "p.scl:3: reduce_sum.axes: axes must be different, got [1, -1]");
    EXPECT_EQ(inferred("dynamic_rescale", {"f32[2]"}, {{"norm", "l3"}}),
              "p.scl:3: dynamic_rescale.norm: must be one of max, l1, l2, bound, got l3");
    EXPECT_EQ(inferred("convert_element_type", {"f32[2]"}, {{"dtype", "f31"}}),
              "p.scl:3: convert_element_type.dtype: must be a dtype, got f31");
    EXPECT_EQ(inferred("convert_element_type", {"f32[2]"}, {{"dtype", "f16"}, {"overflow", "wrap"}}),
              "p.scl:3: convert_element_type.overflow: must be one of saturate, format, got wrap");
    EXPECT_EQ(inferred("transpose", {"f32[2, 3]"}, {{"permutation", list("[0]")}}),
              "p.scl:3: transpose: the permutation must name each axis once, got 1 and 2");
}

TEST(rulebook, builder_broadcasts_and_converts) {
    Program program = parse_program("program p(x: f32[b, 3], w: f32[3]) -> (y: f32[3] = w) {}", "p.scl");
    Builder builder(our_rules(), program);
    EXPECT_EQ(builder.broadcast(0, builder.type(0).shape), 0);
    EXPECT_EQ(builder.convert(0, Dtype::f32), 0);
    const ValueId grown = builder.broadcast(1, builder.type(0).shape);
    EXPECT_EQ(to_string(builder.type(grown)), "f32[b, 3]");
    EXPECT_EQ(to_string(builder.type(builder.convert(grown, Dtype::f16))), "f16[b, 3]");
    EXPECT_EQ(to_string(program.nodes[0].attributes), "{dims: [1], shape: [b, 3]}");
    EXPECT_EQ(program.nodes[builder.size(Extent::symbol("b")) - 2].op, "size");
    EXPECT_EQ(to_string(builder.type(builder.constant(2, Dtype::i32))), "i32[]");
}

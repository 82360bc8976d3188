#include "ir/regions.h"
#include "ir/text.h"
#include "ir/verify.h"
#include <gtest/gtest.h>

// Nodes that own programs: text, canonical form, symbols and errors.
namespace scalide {

namespace {

const std::string loop = R"(program rnn(u: f32[64, 64], h0: f32[64], xs: f32[t, 64]) -> (h: f32[64], ys: f32[t, 64]) {
  scope "cell" {
    h, ys = scan(u, h0, xs) {length: t} : f32[64], f32[t, 64] with
      body(u: f32[64, 64], h: f32[64] inout, x: f32[64] each, i: i32[] step) -> (h = after, y: f32[64] = after) {
        scope "inner" {
          p = dot_general(h, u) {contract: [[0], [0]]} : f32[64]
        }
        s = add(p, x) : f32[64]
        after = tanh(s) : f32[64]
      }
  }
}
)";

const std::string branches = R"(program p(good: bool[], w: f32[8], gs: f32[4, 8]) -> (w1: f32[8]) {
  w1 = cond(good, w, gs) : f32[8] with
    yes(w: f32[8], gs: f32[4, 8]) -> (fresh: f32[8]) {
      fresh = scan(w, gs) {length: 4, reverse: true} : f32[8] with
        body(w: f32[8] inout, g: f32[8] each) -> (w = next) {
          next = sub(w, g) : f32[8]
        }
    },
    no(w: f32[8], gs: f32[4, 8]) -> (same: f32[8] = w) {
    }
}
)";

Program parse(const std::string &text) { return parse_program(text, "t.scl"); }

std::string error_of(const std::string &text) {
    try {
        verify(parse(text), "");
    } catch (const UserError &error) {
        return error.what();
    }
    return "no error";
}

/// The error of `branches` or `loop` with another text at one place.
std::string error_with(std::string text, const std::string &old, const std::string &fresh) {
    const size_t place = text.find(old);
    EXPECT_NE(place, std::string::npos) << old;
    return error_of(text.replace(place, old.size(), fresh));
}

} // namespace

TEST(ir, regions_parse_back) {
    for (const std::string &text : {loop, branches}) {
        EXPECT_EQ(to_string(parse(text)), text);
        EXPECT_EQ(error_of(text), "no error");
    }
}

TEST(ir, regions_have_a_canonical_form) {
    std::string renamed = loop;
    for (const auto &[old, fresh] :
         {std::pair("after", "last"), {"after", "last"}, {"after", "last"}, {"body", "step"}, {"inner", "other"}})
        renamed.replace(renamed.find(old), std::string(old).size(), fresh);
    EXPECT_FALSE(equal(parse(loop), parse(renamed)));
    EXPECT_TRUE(equal(canonical(parse(loop)), canonical(parse(renamed))));
    EXPECT_EQ(canonical(parse(loop)).symbols.size(), 1u);
}

TEST(ir, symbols_of_regions_get_their_values) {
    const std::string text = "program p(x: f32[t, n]) -> (y: f32[t, n]) {\n  y = map(x) {length: t} : f32[t, n] with\n"
                             "    body(e: f32[n] each) -> (r: f32[n]) {\n      r = neg(e) : f32[n]\n    }\n}\n";
    const Program fixed = with_values(parse(text), {{"n", 7}});
    EXPECT_EQ(to_string(fixed.nodes[0].regions[0]->type(0)), "f32[7]");
    EXPECT_NO_THROW(verify(fixed, "with_values"));
}

TEST(ir, regions_are_mapped_from_the_inside) {
    std::vector<std::string> names;
    map_regions(parse(branches), [&](Program region) {
        names.push_back(region.name);
        return region;
    });
    EXPECT_EQ(names, (std::vector<std::string>{"body", "yes", "no"}));
    map_regions(parse(loop), [](Program region) {
        EXPECT_EQ(region.symbols.size(), 1u) << "those of the program";
        return region;
    });
}

TEST(ir, errors_of_loops) {
    EXPECT_EQ(error_with(branches, "reverse", "backwards"),
              "t.scl:4:7: unknown attribute 'scan.backwards'. Use one of: length, reverse, count, unroll, remat");
    EXPECT_EQ(error_with(branches, "reverse: true", "reverse: 1"), "t.scl:4:7: scan.reverse: must be true or false, got 1");
    EXPECT_EQ(error_with(loop, "{length: t} ", ""), "t.scl:3:5: scan.length: must be the number of steps, got nothing. Add {length: ..}");
    EXPECT_EQ(error_with(loop, "x: f32[64] each", "x: f32[32] each"),
              "t.scl:3:5: scan.operands: xs must be f32[t, 32], for x, got f32[t, 64]");
    EXPECT_EQ(error_with(loop, "scan(u, h0, xs)", "scan(u, xs)"), "t.scl:3:5: scan.operands: xs must be f32[64], for h, got f32[t, 64]");
}

TEST(ir, errors_of_while) {
    const std::string halves = R"(program p(x: f32[n]) -> (y: f32[n]) {
  y = while(x) {max_steps: 9} : f32[n] with
    test(x: f32[n]) -> (more: bool[]) {
      most = reduce_max(x) {axes: [0]} : f32[]
      more = gt(most, 1.0) : bool[]
    },
    body(x: f32[n] inout) -> (x = half) {
      half = mul(x, 0.5) : f32[n]
    }
}
)";
    EXPECT_EQ(error_with(halves, "max_steps: 9", "max_steps: n"), "t.scl:2:3: while.max_steps: must be a number, got n");
    EXPECT_EQ(error_with(halves, "more: bool[]", "more: f32[] = most"), "t.scl:2:3: while.test: must have one result, bool[], got f32[]");
}

TEST(ir, errors_of_branches) {
    EXPECT_EQ(error_with(branches, "same: f32[8] = w", "same: f32[4, 8] = gs"),
              "t.scl:2:3: cond.no: must have the result types of yes, f32[8], got f32[4, 8]. Convert the results to the same types");
    EXPECT_EQ(error_with(branches, "good: bool[]", "good: i32[]"), "t.scl:2:3: cond.operands: number 0 must be bool[], got i32[]");
    EXPECT_EQ(error_with(branches, "w: f32[8] inout", "w: f32[8]"), "body.w: an argument that is a result must be inout");
}

TEST(ir, errors_of_arguments_of_regions) {
    EXPECT_EQ(error_with(branches, "no(w: f32[8]", "no(w: f32[8] each"),
              "t.scl:9:8: cond.w: must not be each, because only scan and map have elements, got w: f32[8]");
    EXPECT_EQ(error_with(loop, "u: f32[64, 64], h: ", "u: f32[64, 64] scaled, h: "),
              "t.scl:4:12: scan.u: an argument of a region must be a whole array without a scale, got u: f32[64, 64]");
    EXPECT_EQ(error_with(loop, "i: i32[] step", "i: u32[] step"),
              "t.scl:4:63: scan.i: must be i32[], because it is the number of the step, got i: u32[]");
    EXPECT_EQ(error_with(loop, "inout, x", "inout each, x"), "t.scl:4:28: scan.h: must be inout or each, not both, got h: f32[64]");
    EXPECT_EQ(error_with(loop, " with\n", "\n"), "t.scl:4:11: node: expected '=', got (");
    EXPECT_EQ(error_with(loop, "add(p, x)", "add(p, xs)"),
              "t.scl:8:20: node.operand: must be an argument of the region, or a value that is defined before in it, got xs");
}

} // namespace scalide

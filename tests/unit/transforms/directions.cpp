#include "transforms/analysis/directions.h"
#include "support.h"
#include <gtest/gtest.h>

// Which nodes belong to the forward pass, to a gradient, and to an update. Names do not matter.

namespace scalide {

namespace {

/// Adds the nodes of a program and of its regions: "name direction".
void add_directions(const Program &program, const Directions &directions, std::vector<std::string> &lines) {
    for (const Node &node : program.nodes) {
        lines.push_back(program.value_name(node.results[0]) + " " + std::string(to_string(directions.of(node))));
        for (const Region &region : node.regions) add_directions(*region, directions, lines);
    }
}

std::vector<std::string> directions_in(const std::string &text) {
    const Program program = typed(text);
    std::vector<std::string> lines;
    add_directions(program, Directions(program), lines);
    return lines;
}

} // namespace

TEST(transforms, directions_of_a_step) {
    EXPECT_EQ(directions_in("(x: f32[4], w: f32[4] inout, m: f32[4] inout) -> (loss: f32[], w = v, m = n) {\n"
                            "p = mul(x, w)\n loss = reduce_sum(p) {axes: [0]}\n g = mul(x, 2.5) cotangent\n u = mul(g, w)\n v = sub(w, u)\n"
                            "n = add(m, p)\n}"),
              (std::vector<std::string>{"p forward", "loss forward", "g$0 backward", "g$1 backward", "g backward", "u update", "v update",
                                        "n update"}));
}

TEST(transforms, directions_in_a_loop) {
    EXPECT_EQ(directions_in("(w: f32[4] inout, xs: f32[9, 4]) -> (w = fresh, losses: f32[9]) {\n"
                            "fresh, losses = scan(w, xs) {length: 9} : f32[4], f32[9] with\n"
                            "body(w: f32[4] inout, x: f32[4] each) -> (w = next, loss: f32[]) {\n"
                            "p = mul(x, w)\n loss = reduce_sum(p) {axes: [0]}\n g = mul(x, w) cotangent\n next = sub(w, g)\n}\n}"),
              (std::vector<std::string>{"fresh -", "p forward", "loss forward", "g backward", "next update"}));
}

} // namespace scalide

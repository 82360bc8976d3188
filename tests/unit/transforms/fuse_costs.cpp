#include "support.h"
#include "transforms/analysis/passes.h"
#include "transforms/fusion/groups/overwrites.h"
#include "transforms/fusion/merge/merge.h"
#include "transforms/pipeline.h"
#include <gtest/gtest.h>

// What fusion asks grows as the program does: questions are counted, never seconds.
namespace scalide {
namespace {

/// A step of so many layers: products forward and backward, and weights that follow the gradients divided by the norm of all of them.
Program clipped_step(int layers) {
    std::string arguments = "x0: f32[8, 8]", results, body, total;
    for (int i = 0; i < layers; ++i) {
        const std::string n = std::to_string(i), next = std::to_string(i + 1);
        arguments += ", w" + n + ": f32[8, 8] inout";
        results += (i == 0 ? "w" : ", w") + n + " = u" + n;
        body += "  h" + n + " = dot_general(x" + n + ", w" + n + ") {contract: [[1], [0]]}\n  x" + next + " = tanh(h" + n + ")\n";
    }
    body += "  d" + std::to_string(layers) + " = mul(x" + std::to_string(layers) + ", x0)\n";
    for (int i = layers - 1; i >= 0; --i) {
        const std::string n = std::to_string(i), next = std::to_string(i + 1);
        body += "  e" + n + " = mul(d" + next + ", x" + next + ")\n  g" + n + " = dot_general(x" + n + ", e" + n +
                ") {contract: [[0], [0]]}\n  d" + n + " = dot_general(e" + n + ", w" + n + ") {contract: [[1], [1]]}\n  q" + n +
                " = mul(g" + n + ", g" + n + ")\n  s" + n + " = reduce_sum(q" + n + ") {axes: [0, 1]}\n";
        body += total.empty() ? "" : "  t" + n + " = add(" + total + ", s" + n + ")\n";
        total = (total.empty() ? "s" : "t") + n;
    }
    body += "  norm = sqrt(" + total + ")\n";
    for (int i = 0; i < layers; ++i) {
        const std::string n = std::to_string(i);
        body += "  c" + n + " = div(g" + n + ", norm)\n  u" + n + " = sub(w" + n + ", c" + n + ")\n";
    }
    return to_base_operators(typed("(" + arguments + ") -> (" + results + ") {\n" + body + "}\n"), rules(), CompileOptions());
}

/// So many sums over rows, each of what follows from the sum before.
Program chained_sums(int layers) {
    std::string body;
    for (int i = 0; i < layers; ++i) {
        const std::string n = std::to_string(i), next = std::to_string(i + 1);
        body += "  s" + n + " = reduce_sum(x" + n + ") {axes: [0]}\n  b" + n + " = broadcast_in_dim(s" + n +
                ") {dims: [1], shape: [8, 8]}\n  d" + n + " = dot_general(x" + n + ", b" + n + ") {contract: [[1], [0]]}\n  x" + next +
                " = tanh(d" + n + ")\n";
    }
    return to_base_operators(typed("(x0: f32[8, 8]) -> (x" + std::to_string(layers) + ": f32[8, 8]) {\n" + body + "}\n"), rules(),
                             CompileOptions());
}

/// Fusion of a program, as far as it asks about the order of kernels.
struct Formed {
    explicit Formed(const Program &source) : program(source), graph(program, true), groups(graph) {
        internal_check(order_overwrites(groups), "an argument is overwritten too soon");
        merge_along_edges(groups);
        merge_side_by_side(groups);
        merge_scalars(groups);
    }
    const Program program;
    const FuseGraph graph;
    Groups groups;
};

/// So many steps of a recurrence whose carries are one addition away from what other kernels read too, and its backward pass.
Program recurrence(int steps) {
    std::string results = "x: f32[8, 8] = x" + std::to_string(steps), body, backward;
    for (int i = 0; i < steps; ++i) {
        const std::string n = std::to_string(i), next = std::to_string(i + 1);
        body += "  p" + n + " = dot_general(x" + n + ", w) {contract: [[1], [0]]}\n  g" + n + " = tanh(p" + n + ")\n  r" + n +
                " = dot_general(g" + n + ", v) {contract: [[1], [0]]}\n  x" + next + " = add(x" + n + ", g" + n + ")\n";
        backward += "  e" + n + " = dot_general(x" + n + ", x" + std::to_string(steps) + ") {contract: [[0], [0]]}\n";
        results += ", r" + n + ": f32[8, 8], e" + n + ": f32[8, 8]";
    }
    return compile(typed("(x0: f32[8, 8], w: f32[8, 8], v: f32[8, 8]) -> (" + results + ") {\n" + body + backward + "}\n"), rules(),
                   CompileOptions());
}

size_t count_inputs(const Groups &groups) {
    size_t count = 0;
    for (int group = 0; group < groups.size(); ++group) count += groups.inputs(group).size();
    return count;
}

} // namespace

TEST(fuse_costs, questions_about_the_order_see_a_number_of_edges_that_grows_as_the_program) {
    const double few = static_cast<double>(Formed(clipped_step(40)).groups.edges_seen()),
                 many = static_cast<double>(Formed(clipped_step(160)).groups.edges_seen());
    EXPECT_LT(many, 25 * few) << few << " and " << many; // a path through the sum of all norms is as long as that sum
    EXPECT_LT(many, 1e5);
}

TEST(fuse_costs, kernels_side_by_side_ask_once_what_they_need) {
    const int64_t few = Formed(chained_sums(40)).groups.edges_seen(), many = Formed(chained_sums(160)).groups.edges_seen();
    EXPECT_LE(many, 5 * few) << few << " and " << many;
}

TEST(fuse_costs, kernels_read_the_norm_of_many_tensors_and_not_its_parts) {
    const size_t few = count_inputs(Formed(clipped_step(40)).groups), many = count_inputs(Formed(clipped_step(160)).groups);
    EXPECT_LT(many, 5 * few) << few << " and " << many;
}

TEST(fuse_costs, steps_of_a_recurrence_share_their_kernels) { EXPECT_EQ(recurrence(12).programs.size(), recurrence(24).programs.size()); }

} // namespace scalide

#include "transforms/fusion/groups/reachability.h"
#include <gtest/gtest.h>
#include <random>

namespace scalide {

namespace {

/// The same questions, answered by a walk over all edges.
bool walks(const Reachability &graph, int from, int to, bool around) {
    std::vector<int> todo;
    for (int next : graph.after(from))
        if (!around || next != to) todo.push_back(next);
    std::set<int> seen(todo.begin(), todo.end());
    for (size_t i = 0; i < todo.size(); ++i)
        for (int next : graph.after(todo[i]))
            if (seen.insert(next).second) todo.push_back(next);
    return seen.contains(to);
}

void expect_agreement(const Reachability &graph, const std::vector<int> &vertices) {
    for (int from : vertices)
        for (int to : vertices) {
            if (from == to) continue;
            ASSERT_EQ(graph.has_path(from, to), walks(graph, from, to, false));
            ASSERT_EQ(graph.has_path_around(from, to), walks(graph, from, to, true));
        }
    for (int vertex : vertices)
        for (int next : graph.after(vertex)) ASSERT_LT(graph.place(vertex), graph.place(next));
}

} // namespace

TEST(transforms, reachability_agrees_with_a_walk_over_all_edges) {
    std::mt19937 random(1);
    for (int round = 0; round < 40; ++round) {
        constexpr int count = 24;
        std::vector<std::set<int>> successors(count);
        std::vector<int> vertices;
        for (int vertex = 0; vertex < count; ++vertex) {
            vertices.push_back(vertex);
            for (int next = vertex + 1; next < count; ++next)
                if (random() % 12 == 0) successors[vertex].insert(next);
        }
        Reachability graph(successors);
        expect_agreement(graph, vertices);
        while (vertices.size() > 2) {
            const int first = vertices[random() % vertices.size()], second = vertices[random() % vertices.size()];
            if (first == second) continue;
            const bool closes = walks(graph, second, first, false);
            const bool closes_around = walks(graph, first, second, true) || walks(graph, second, first, true);
            if (random() % 2 == 0) {
                ASSERT_EQ(graph.connect(first, second), !closes);
            } else {
                ASSERT_EQ(graph.merge(first, second), !closes_around);
                if (!closes_around) std::erase(vertices, second);
            }
            expect_agreement(graph, vertices);
            if (closes_around) vertices.pop_back(); // else a dense graph would never end
        }
    }
}

} // namespace scalide

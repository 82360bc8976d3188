#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <vector>

namespace scalide {

/// The edges of a graph without cycles, both ways, and an order of its vertices that agrees with them. Edges are added and vertices
/// merged; what then stands on the wrong side moves. Each question is two searches that go towards each other, within the stretch of the
/// order between two vertices, until they meet or one of them has seen all that it can reach: it costs what the smaller one sees.
class Reachability {
public:
    /// Of a graph by the successors of each vertex, which have higher numbers.
    explicit Reachability(std::vector<std::set<int>> successors);

    const std::set<int> &before(int vertex) const { return before_[vertex]; }
    const std::set<int> &after(int vertex) const { return after_[vertex]; }
    /// Edges that searches have looked at so far: what the questions have cost.
    int64_t edges_seen() const { return edges_seen_; }
    /// Vertices with lower places come first.
    int64_t place(int vertex) const { return places_[vertex]; }

    /// True when there is a path, or both are one vertex.
    bool has_path(int from, int to) const;
    /// True when there is a path of more than one edge.
    bool has_path_around(int from, int to) const;

    /// Adds an edge; false, and nothing is changed, where it would close a cycle.
    bool connect(int from, int to);
    /// Merges the second vertex into the first; false, and nothing is changed, where that would close a cycle.
    bool merge(int first, int second);
    /// Merges each vertex `v` into `target[v]`, which is its own target. The graph must stay without cycles.
    void merge_all(const std::vector<int> &target);

private:
    /// What a search from one of two vertices has seen, in order.
    struct Seen {
        bool do_meet = false;    ///< there is a path of more than one edge
        bool is_forward = false; ///< from the first of the two: all that follows it, up to the second
        std::vector<int> vertices;
    };
    Seen search(int first, int last) const;

    void put(int vertex, int64_t place);
    void put_before(int vertex, const std::vector<int> &moved);
    void put_after(int vertex, const std::vector<int> &moved);
    void put_between(int64_t low, int64_t high, const std::vector<int> &moved);
    void take_edges(int first, int second);
    void renew_places();

    std::vector<std::set<int>> before_, after_;
    std::vector<int64_t> places_;
    std::map<int64_t, int> order_;  ///< vertices by place
    mutable std::vector<int> seen_; ///< by vertex: the search that has seen it last, negative from the other end
    mutable int searches_ = 0;
    mutable int64_t edges_seen_ = 0;
};

} // namespace scalide

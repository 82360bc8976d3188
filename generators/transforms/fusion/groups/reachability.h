#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <vector>

namespace scalide {

/// An acyclic graph whose edges and merged vertices change, with a topological order. The order is repaired after each change. A question
/// is answered by two searches, one from each end. They visit only vertices between the two ends in the order. They stop when they meet, or
/// when one search has seen all that it can reach. So the cost is that of the smaller search.
class Reachability {
public:
    /// Builds the graph from the successors of each vertex. Successors must have higher numbers.
    explicit Reachability(std::vector<std::set<int>> successors);

    const std::set<int> &before(int vertex) const { return before_[vertex]; }
    const std::set<int> &after(int vertex) const { return after_[vertex]; }
    /// Number of edges that searches have visited so far.
    int64_t edges_seen() const { return edges_seen_; }
    /// The position of a vertex in the topological order.
    int64_t place(int vertex) const { return places_[vertex]; }

    /// True if there is a path, or if both are the same vertex.
    bool has_path(int from, int to) const;
    /// True if there is a path of at least two edges.
    bool has_path_around(int from, int to) const;

    /// Adds an edge. Returns false, and changes nothing, if this would create a cycle.
    bool connect(int from, int to);
    /// Merges the second vertex into the first. Returns false, and changes nothing, if this would create a cycle.
    bool merge(int first, int second);
    /// Merges each vertex `v` into `target[v]`; a target is its own target. The graph must stay acyclic.
    void merge_all(const std::vector<int> &target);

private:
    /// The result of a search between two vertices.
    struct Seen {
        bool do_meet = false;    ///< there is a path of at least two edges
        bool is_forward = false; ///< `vertices` follow the first vertex; otherwise they precede the last
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
    std::map<int64_t, int> order_;  ///< vertices by position
    mutable std::vector<int> seen_; ///< by vertex: number of the last search that visited it, negative for the search from the other end
    mutable int searches_ = 0;
    mutable int64_t edges_seen_ = 0;
};

} // namespace scalide

#pragma once
#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

namespace scalide {

/// Which vertices of a growing graph can be reached from which: a row of bits a vertex, so that a question is a look and an edge costs
/// a pass over the rows.
class Reachability {
public:
    /// Of a graph by the successors of each vertex, which have higher numbers.
    explicit Reachability(const std::vector<std::set<int>> &successors);

    /// True when there is a path, or both are one vertex.
    bool has_path(int from, int to) const { return rows_[from * words_ + to / 64] >> (to % 64) & 1; }
    /// Adds an edge: whatever reaches `from` now reaches what `to` reaches.
    void connect(int from, int to);

private:
    size_t words_; ///< of a row
    std::vector<uint64_t> rows_;
};

} // namespace scalide

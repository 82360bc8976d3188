#pragma once
#include "transforms/analysis/graph.h"
#include "transforms/fusion/groups/reachability.h"
#include <memory>
#include <set>

namespace scalide {

struct KernelCall;

enum class KernelKind : uint8_t { scalar, map, row, column, full, contract, scan, scatter, sort, window, tiled, small };
std::string_view to_string(KernelKind kind);

/// The nodes that one kernel will run. Shapes omit axes of extent 1.
struct Group {
    KernelKind kind = KernelKind::map;
    std::vector<int> nodes; ///< anchored nodes, in program order; empty: merged into another group
    Extents iteration; ///< operand shape of reductions, result shape of a dot_general or window operator, otherwise the shape of the (last)
                       ///< result
    Extents kept;      ///< of row and column: the shape of `iteration` after the reduction
    bool moves = false;       ///< the group reads values that it computes at other indices
    std::string library = ""; ///< the library that computes the group (fusion/merge/calls.h); empty: a generated kernel
    std::shared_ptr<const KernelCall> call = nullptr; ///< the call of the library, in values of the program
};

/// A fusion in progress: anchored nodes partitioned into groups, and an order between the groups. At first, each node is a group. A group
/// runs after the groups whose values it reads. add_order() adds further constraints.
class Groups {
public:
    explicit Groups(const FuseGraph &graph);

    const FuseGraph &graph() const { return graph_; }
    const Program &program() const { return graph_.program(); }
    int size() const { return static_cast<int>(groups_.size()); }
    const Group &operator[](int group) const { return groups_[group]; }
    bool is_alive(int group) const { return !groups_[group].nodes.empty(); }
    /// The group of an anchored node.
    int group_of(int node) const { return group_of_[node]; }
    int producer_group(ValueId value) const;

    /// Groups that run directly before or after this one: producers, consumers, and groups ordered by add_order().
    const std::set<int> &before(int group) const { return paths_.before(group); }
    const std::set<int> &after(int group) const { return paths_.after(group); }
    /// All groups that are not empty, in an order in which they can run.
    std::vector<int> in_order() const;
    /// Requires that the group of the first node runs before the group of the second.
    void add_order(int first_node, int second_node);
    /// Number of edges that searches have visited so far.
    int64_t edges_seen() const { return paths_.edges_seen(); }
    /// True if `to` must run after `from`, or is the same group.
    bool has_path(int from, int to) const { return paths_.has_path(from, to); }
    /// True if there is such a path through a third group.
    bool has_path_around(int from, int to) const { return paths_.has_path_around(from, to); }

    /// Reads of `consumer` of values that `producer` computes.
    std::vector<Read> reads_between(int producer, int consumer) const;
    /// Values that leave a group, because other groups read them or because they are results of the program. In the order of their nodes.
    const std::vector<ValueId> &outputs(int group) const { return outputs_[group]; }
    /// Values that enter a group: arguments and results of other groups; in the order of their first use.
    const std::vector<ValueId> &inputs(int group) const { return inputs_[group]; }
    /// Number of results, reductions, matmuls and windows. Halide's compile time grows with it.
    int stages(int group) const { return stages_[group]; }
    /// The groups that share an array with `group`: they compute an array that it reads, or read the same array. In ascending order.
    std::set<int> neighbours(int group) const;
    /// True if nothing outside `readers_group` reads a value of `group`.
    bool is_read_only_by(int group, int readers_group) const;

    /// Records that a library computes this group by this call.
    void set_library(int group, const std::string &library, std::shared_ptr<const KernelCall> call) {
        groups_[group].library = library;
        groups_[group].call = std::move(call);
    }
    void set_kind(int group, KernelKind kind) { groups_[group].kind = kind; }
    /// Merges the second group into the first, which keeps its number. Throws InternalError if this would create a cycle.
    void merge(int first, int second, Group merged);
    /// Merges the groups of each part into the first group of the part, whose kind and shapes stay. No group outside a part may run between
    /// groups of the part.
    void merge_all(const std::vector<std::vector<int>> &parts);

private:
    void find_values(int group);

    const FuseGraph &graph_;
    std::vector<Group> groups_;
    std::vector<int> group_of_;
    std::vector<std::vector<ValueId>> inputs_, outputs_;
    std::vector<int> stages_;
    Reachability paths_;
};

/// The nodes of two groups, in program order.
std::vector<int> nodes_of(const Groups &groups, int first, int second);

/// Describes a kernel of this node alone: its kind and its shapes.
Group group_of_node(const Program &program, int node);

} // namespace scalide

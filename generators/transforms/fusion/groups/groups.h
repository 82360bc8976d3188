#pragma once
#include "transforms/fusion/groups/graph.h"
#include "transforms/fusion/groups/reachability.h"
#include <memory>
#include <set>

namespace scalide {

struct KernelCall;

enum class KernelKind : uint8_t { scalar, map, row, column, full, contract, scan, scatter, sort, window, tiled };
std::string_view to_string(KernelKind kind);

/// Nodes that one kernel will run. Shapes are without axes of extent 1.
struct Group {
    KernelKind kind = KernelKind::map;
    std::vector<int> nodes;   ///< anchored nodes, in program order; empty: merged into another group
    Extents iteration;        ///< what reductions fold, the result of a dot_general or window operator, else the shape of the (last) result
    Extents kept;             ///< of row and column: what reductions leave of `iteration`
    bool moves = false;       ///< computed values are read at another index within the group
    std::string library = ""; ///< that computes it (fusion/merge/calls.h); empty: a kernel of ours
    std::shared_ptr<const KernelCall> call = nullptr; ///< of the library, of values of the program
};

/// The fusion in progress: a partition of the anchored nodes of a program into groups, at first one each, and the order between them:
/// a group runs after the groups whose values it reads; add_order says what else there is.
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

    /// Groups that must run before / after this one.
    const std::set<int> &before(int group) const { return paths_.before(group); }
    const std::set<int> &after(int group) const { return paths_.after(group); }
    /// The groups that are left, each after those that must run before it.
    std::vector<int> in_order() const;
    /// Adds an order between the groups of two nodes.
    void add_order(int first_node, int second_node);
    /// Edges that questions about the order have looked at so far.
    int64_t edges_seen() const { return paths_.edges_seen(); }
    /// True when `to` must run after `from` (or is it).
    bool has_path(int from, int to) const { return paths_.has_path(from, to); }
    /// The same by way of a third group.
    bool has_path_around(int from, int to) const { return paths_.has_path_around(from, to); }

    /// Reads of `consumer` of values that `producer` makes.
    std::vector<Read> reads_between(int producer, int consumer) const;
    /// Values that leave a group: read by other groups or results of the program; in the order of their nodes.
    const std::vector<ValueId> &outputs(int group) const { return outputs_[group]; }
    /// Values that enter a group: arguments and results of other groups; in the order of their first use.
    const std::vector<ValueId> &inputs(int group) const { return inputs_[group]; }
    /// What Halide compiles at a cost: results, reductions, products, windows.
    int stages(int group) const { return stages_[group]; }
    /// The groups that make arrays which `group` reads, or read them too; in order of their numbers.
    std::set<int> neighbours(int group) const;
    /// True when nothing outside `readers_group` reads what `group` makes.
    bool is_read_only_by(int group, int readers_group) const;

    /// A library computes this group by this call.
    void set_library(int group, const std::string &library, std::shared_ptr<const KernelCall> call) {
        groups_[group].library = library;
        groups_[group].call = std::move(call);
    }
    /// Its kernel is of this kind.
    void set_kind(int group, KernelKind kind) { groups_[group].kind = kind; }
    /// Makes one group of two; it keeps the number of the first. Throws InternalError where that would close a cycle.
    void merge(int first, int second, Group merged);
    /// Merges the groups of each part, of which none needs the others by way of a group outside; they keep what their first one is.
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

/// The kind of a kernel of this node alone, and its shapes.
Group group_of_node(const Program &program, int node);

} // namespace scalide

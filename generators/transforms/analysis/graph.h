#pragma once
#include "kinds/access.h"
#include "transforms/analysis/costs.h"
#include <set>
#include <span>

namespace scalide {

/// A node reads a value, directly or through floating nodes.
struct Read {
    ValueId value = -1; ///< an argument, or the result of an anchored node
    int reader = -1;    ///< an anchored node
    Access access = Access::same;
};

/// An inout argument and the value that it holds after the run. Listed only if a node computes that value. If several scatters update the
/// argument one after the other (updates.h), the list has one entry for each scatter; `argument` is then the array that the scatter reads.
struct Overwrite {
    ValueId argument = -1, value = -1;
};

/// The nodes of a program as fusion sees them. A *floating* node is stored by no kernel: each kernel that needs its value computes it
/// again. Floating nodes are:
/// - Sources, movement, and conversions from narrower floats.
/// - Cheap arithmetic on arguments alone.
/// - Rank-0 arithmetic, if kernels can afford it (TargetFacts::prepares_kernels).
/// - Nodes whose index is in `repeated`.
///
/// All other nodes are *anchored*: one kernel computes them once.
class FuseGraph {
public:
    FuseGraph(const Program &program, bool prepares_kernels, std::set<int> repeated = {});

    const Program &program() const { return program_; }
    /// TargetFacts::prepares_kernels
    bool prepares_kernels() const { return prepares_kernels_; }
    /// The iteration pattern of a node.
    Shape shape(int node) const { return shapes_[node]; }
    /// Estimated size of a value (NominalSizes).
    double elements(ValueId value) const { return elements_[value]; }
    double bytes(ValueId value) const { return elements_[value] * size_of(program_.type(value).dtype); }
    bool is_floating(int node) const { return floating_[node]; }
    /// Nodes that float because the caller named them.
    const std::set<int> &repeated() const { return repeated_; }
    /// The node that computes a value; -1 for arguments.
    int producer(ValueId value) const { return producers_[value]; }
    /// The reads of an anchored node, without duplicates.
    const std::vector<Read> &reads(int node) const { return reads_[node]; }
    /// All reads of a value.
    const std::vector<Read> &readers(ValueId value) const { return readers_[value]; }
    /// True when the value is a result of the program.
    bool is_result(ValueId value) const { return is_result_[value]; }
    /// The node that computes the new value of an argument, taken from the first result that names the argument. -1: nothing overwrites it.
    int overwriter(ValueId argument) const { return overwriters_[argument]; }
    const std::vector<Overwrite> &overwrites() const { return overwrites_; }
    /// The value that the argument holds after the run, which may be made by a later overwrite of the same argument.
    ValueId last_value(const Overwrite &overwrite) const;
    /// The overwrites whose new value this node computes.
    std::span<const Overwrite> overwrites_by(int node) const;
    /// The stored values from which a value is computed through floating nodes. A stored value is its own source.
    const std::vector<Read> &sources(ValueId value) const { return sources_[value]; }

private:
    void add_overwrites(ValueId argument, ValueId value);
    void decide_floating(int node);
    bool is_cheap(int node) const;
    bool reads_overwritten(const Node &node) const;
    /// The stored values that a node reads, directly or through floating nodes.
    std::set<ValueId> inputs_of(const Node &node) const;
    void find_sources(int node);
    void add_reads(int node);

    const Program &program_;
    const bool prepares_kernels_;
    const std::set<int> repeated_;
    std::vector<Shape> shapes_;    ///< by node
    std::vector<double> elements_; ///< by value
    std::vector<int> producers_, overwriters_;
    std::vector<Overwrite> overwrites_;         ///< in the order of the program's results
    std::vector<Overwrite> overwrites_by_node_; ///< in the order of the nodes that compute their values
    std::vector<bool> floating_, is_result_;
    std::vector<bool> is_copied_;      ///< by value: a copy of the value exists
    std::vector<bool> from_arguments_; ///< by value: computed from arguments and sources alone, by floating nodes
    std::vector<int> repeated_cost_;   ///< by value: cost of the floating nodes that compute it
    std::vector<std::vector<Read>> sources_, reads_, readers_;
};

} // namespace scalide

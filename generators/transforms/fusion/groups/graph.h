#pragma once
#include "kinds/access.h"
#include "transforms/fusion/groups/costs.h"
#include <set>
#include <span>

namespace scalide {

/// A node reads a value. Floating nodes between the two are looked through.
struct Read {
    ValueId value = -1; ///< an argument, or the result of an anchored node
    int reader = -1;    ///< an anchored node
    Access access = Access::same;
};

/// An inout argument and the value that it holds afterwards, where a node makes that value.
struct Overwrite {
    ValueId argument = -1, value = -1;
};

/// The nodes of a program as fusion sees them. *Floating* nodes belong to no kernel: each kernel that needs one computes it again. They
/// are sources, movement, decoding converts, cheap arithmetic on arguments alone, in rank 0 too where kernels can afford it
/// (`repeats_scalars`, TargetFacts::prepares_kernels), and what `repeated` names (by index). All others are *anchored*: computed once.
class FuseGraph {
public:
    FuseGraph(const Program &program, bool repeats_scalars, std::set<int> repeated = {});

    const Program &program() const { return program_; }
    /// How a node moves over indices.
    Shape shape(int node) const { return shapes_[node]; }
    /// Nominal sizes of a value.
    double elements(ValueId value) const { return elements_[value]; }
    double bytes(ValueId value) const { return elements_[value] * size_of(program_.type(value).dtype); }
    bool is_floating(int node) const { return floating_[node]; }
    /// Nodes that float because the caller said so.
    const std::set<int> &repeated() const { return repeated_; }
    /// The node that makes a value; -1 for arguments.
    int producer(ValueId value) const { return producers_[value]; }
    /// Reads of an anchored node (by its index in the program), without duplicates.
    const std::vector<Read> &reads(int node) const { return reads_[node]; }
    /// All reads of a value.
    const std::vector<Read> &readers(ValueId value) const { return readers_[value]; }
    /// True when the value is a result of the program.
    bool is_result(ValueId value) const { return is_result_[value]; }
    /// The node that makes what an argument holds afterwards, of the program's first result that does; -1: nobody overwrites it.
    int overwriter(ValueId argument) const { return overwriters_[argument]; }
    const std::vector<Overwrite> &overwrites() const { return overwrites_; }
    /// By the node that makes the value.
    std::span<const Overwrite> overwrites_by(int node) const;
    /// What a value stands for when floating nodes are looked through.
    const std::vector<Read> &sources(ValueId value) const { return sources_[value]; }

private:
    void decide_floating(int node);
    bool is_cheap(int node) const;
    bool reads_overwritten(const Node &node) const;
    /// What a node reads when floating nodes are looked through.
    std::set<ValueId> inputs_of(const Node &node) const;
    void find_sources(int node);
    void add_reads(int node);

    const Program &program_;
    const bool repeats_scalars_;
    const std::set<int> repeated_;
    std::vector<Shape> shapes_;    ///< by node
    std::vector<double> elements_; ///< by value
    std::vector<int> producers_, overwriters_;
    std::vector<Overwrite> overwrites_;         ///< in the order of the program's results
    std::vector<Overwrite> overwrites_by_node_; ///< in the order of the nodes that make their values
    std::vector<bool> floating_, is_result_;
    std::vector<bool> is_copied_;      ///< by value: a copy stands in for it as a result
    std::vector<bool> from_arguments_; ///< by value: made of arguments and sources alone, by floating nodes
    std::vector<int> repeated_cost_;   ///< by value: arithmetic of the floating nodes behind it
    std::vector<std::vector<Read>> sources_, reads_, readers_;
};

} // namespace scalide

#pragma once
#include "ir/regions.h"
#include "rulebook/builder.h"

namespace scalide {

/// A body or a branch, after whose nodes the nodes of its vector-Jacobian product stand. Cotangents that come from outside are values
/// without a node.
struct BodyVjp {
    Program program;
    size_t first_node = 0;           ///< the first node of the product
    std::vector<ValueId> cotangents; ///< of each result, from outside; -1: zero
    std::vector<ValueId> gradients;  ///< of each argument; -1: zero

    /// Returns the values from outside of the product that it reads: arguments and values of the primal nodes.
    std::vector<ValueId> residuals() const;
    /// Returns true for a value that the product computes, or a cotangent from outside.
    std::vector<bool> is_cotangent() const;
};

/// `region` is open (ir/regions.h). `results`: which results have cotangents; `arguments`: which get gradients.
BodyVjp differentiate_body(Program region, const Rulebook &rulebook, const std::vector<bool> &results, const std::vector<bool> &arguments);

/// Copies nodes between programs.
class NodeCopies {
public:
    NodeCopies(const Program &from, Program &to) : from_(from), to_(to), map_(from.values.size(), -1) {}

    void map(ValueId from, ValueId to) { map_[from] = to; }
    /// Returns the copy of a value; -1 if there is none.
    ValueId operator[](ValueId from) const { return map_[from]; }
    /// Appends a copy of the node, whose operands have copies.
    void add(const Node &node);
    /// Adds an argument that takes the value of another program's argument or node.
    ValueId add_argument(ValueId from, Supply supply = Supply::run, bool inout = false);

private:
    const Program &from_;
    Program &to_;
    std::vector<ValueId> map_;
};

/// Returns an empty program for the gradient of an open region.
Program empty_region(const Program &region);

ValueId append_zeros(Builder &builder, Type type);

/// Returns a region without unused nodes, symbols and sub-programs.
Region finish_region(Program program);

} // namespace scalide

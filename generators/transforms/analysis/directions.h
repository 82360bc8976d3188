#pragma once
#include "transforms/analysis/flattened.h"
#include <map>

namespace scalide {

/// The pass of a training step to which a node belongs, as reports name it. Only the data flow decides:
/// - backward: the node has the role cotangent, so it belongs to a gradient.
/// - update: it depends on a gradient; or neither a gradient nor an output depends on it, only new values of inout arguments. So it belongs
///   to an optimizer, a loss scaler, statistics, or the state of a policy.
/// - forward: every other node.
/// - none: an argument, or a node with regions, whose nodes have directions of their own.
/// A node in a loop has the direction that it has in the first step: the forward pass of the second step depends on the first gradient.
enum class Direction : uint8_t { none, forward, backward, update };

/// Returns "forward", "backward" or "update"; "-" for none.
std::string_view to_string(Direction direction);

/// Returns the values on which outputs or gradients depend.
std::vector<bool> needed_by_model(const Program &program);

/// Returns the directions of the nodes of a program without regions, by number of the node.
std::vector<Direction> directions_of(const Program &flat);

/// The directions of the nodes of a program and of its regions.
class Directions {
public:
    /// The program must outlive the object and must not move.
    explicit Directions(const Program &program);
    Direction of(const Node &node) const;

private:
    void add(const Program &program, const FlatNodes &nodes, const std::vector<Direction> &flat);

    std::map<const Node *, Direction> directions_;
};

} // namespace scalide

#pragma once
#include "ir/program.h"
#include <map>

namespace scalide {

class OpenNode;

/// A program whose nodes are visited in order: a main program, or a region of an open node.
struct Level {
    Program &program;
    OpenNode *owner = nullptr;                ///< of a region
    size_t region = 0;                        ///< its number
    std::vector<Node> before = {};            ///< nodes to add before the node that is visited
    std::map<std::string, ValueId> made = {}; ///< the results of such nodes, by what they compute

    /// Returns the value of the program around the region that this value is, if it is a capture; otherwise -1.
    ValueId captured(ValueId value) const;
};

/// A node with regions, which gets more captures while its regions are visited.
class OpenNode {
public:
    OpenNode(Level &outer, Node &node);

    Node &node;
    Level &outer;
    std::vector<Program> regions;

    bool is_loop() const;
    /// Returns the operand of an argument that is a capture; -1 for another one.
    ValueId captured_by(size_t region, size_t argument) const;
    /// Returns the value in a region that is `value` of the program around it. All regions get the argument.
    ValueId capture(size_t region, ValueId value);
    /// Puts the regions into the node, without captures that no region reads.
    void close();

private:
    std::map<ValueId, std::vector<ValueId>> captures_; ///< for each region, by the value around it
};

/// Returns the value in `to` that is `value` of `from`, a level around it.
ValueId bring(const Level &from, ValueId value, Level &to);

} // namespace scalide

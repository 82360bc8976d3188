#pragma once
#include "ir/program.h"

namespace scalide {

/// Where the nodes of a program with regions are in a flat program.
struct FlatNodes {
    std::vector<int> last;                       ///< by node: its last copy; -1 for a node with regions
    std::vector<int> first;                      ///< by node: its first copy
    std::vector<std::vector<FlatNodes>> regions; ///< by node: its regions
};

/// A program without regions, for analyses of what depends on what. It cannot run: bodies of loops are there twice, so that a value that is
/// carried comes from the body; each branch and each test is there once; an element of a sequence is a `slice` of it, and a stack is a
/// `concatenate` of its elements, whatever their number.
struct Flat {
    Program program;
    FlatNodes nodes;
};

/// Without regions, the flat program is the program itself.
Flat flattened(const Program &program);

} // namespace scalide

#pragma once
#include "ir/program.h"
#include <optional>

namespace scalide {

/// What a sub-expression of rule text stands for while it becomes nodes: a value known at build time, an array, or several terms (an
/// expression over a variadic operand, a list).
///
/// An array is a node seen in another shape: axis i of the node is axis dims[i] of `shape`, all other axes of `shape` have extent 1.
/// So a reduction keeps its axes in rule text, yet its result is the node itself, and a broadcast of it is one node.
struct Term {
    std::optional<Attribute> constant;
    ValueId node = -1;
    Extents shape;
    std::vector<int64_t> dims;
    std::optional<std::vector<Term>> cases;
};

/// A static value, or the array `node` in its own shape.
Term make_term(Attribute constant);
Term make_term(const Program &program, ValueId node);
Term make_term(std::vector<Term> cases);

/// True for one static element or array element, whatever the rank.
bool is_single(const Term &term);

} // namespace scalide

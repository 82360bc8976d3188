#pragma once
#include "ir/program.h"
#include <optional>

namespace scalide {

/// The value of a sub-expression of rule text during elaboration: a static value, an array, or several terms (a list, or an expression with
/// a variadic operand).
///
/// An array is a node with another shape: axis i of the node is axis dims[i] of `shape`, and all other axes of `shape` have extent 1. So a
/// reduction keeps its axes in rule text without a reshape, and a broadcast of it needs one node.
struct Term {
    std::optional<Attribute> constant;
    ValueId node = -1;
    Extents shape;
    std::vector<int64_t> dims;
    std::optional<std::vector<Term>> cases;
};

/// Makes a term from a static value, from the array `node` in its own shape, or from several terms.
Term make_term(Attribute constant);
Term make_term(const Program &program, ValueId node);
Term make_term(std::vector<Term> cases);

/// Returns true if the term has exactly one element, for any rank.
bool is_single(const Term &term);

} // namespace scalide

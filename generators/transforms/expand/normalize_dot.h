#pragma once
#include "rulebook/builder.h"

namespace scalide {

/// True if a dot_general has at most one batch axis, and exactly one free lhs, free rhs and contracting axis.
bool is_normal_dot(const Program &program, const Node &dot);

/// A Remake (splice.h): writes a dot_general in that form. A reshape merges the axes of each group, after a transpose if they are not
/// adjacent. A group without axes gets one of extent 1. The result is reshaped back.
std::vector<ValueId> normalize_dot(Builder &builder, const Node &dot);

/// True if the free axes of one operand have one element: a product of a matrix and a vector, or of two vectors.
bool is_vector_dot(const Program &program, const Node &dot);

/// A Remake: writes such a dot_general as a sum of products, which reads the larger operand once, in memory order. It is memory-bound, and
/// the register tiles of a matmul kernel would be mostly empty.
std::vector<ValueId> dot_as_sum(Builder &builder, const Node &dot);

} // namespace scalide

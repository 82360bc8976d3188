#pragma once
#include "rulebook/builder.h"

namespace scalide {

/// True when a dot_general has at most one batch axis and exactly one free lhs, free rhs and contracting axis.
bool is_normal_dot(const Program &program, const Node &dot);

/// The same dot_general in that form: axes of a group are merged into one by a reshape (and a transpose where they don't stand side by
/// side), a group without axes gets one of extent 1; the result is reshaped back. A Remake (splice.h).
std::vector<ValueId> normalize_dot(Builder &builder, const Node &dot);

/// True when one operand has no free elements to speak of: a product of a matrix and a vector, or of two vectors.
bool is_vector_dot(const Program &program, const Node &dot);

/// The same as a sum of products, which reads the larger operand once, as it lies in memory: such a dot_general is bound by memory, and
/// register tiles of a matrix product would be mostly empty. A Remake.
std::vector<ValueId> dot_as_sum(Builder &builder, const Node &dot);

/// True for operands that are integers: kernels of kind `contract` add in f32.
bool is_integer_dot(const Program &program, const Node &dot);

/// The same as a sum of products over all pairs of elements, in the dtype of the result, wrapping around. A Remake.
std::vector<ValueId> dot_as_sum_of_pairs(Builder &builder, const Node &dot);

} // namespace scalide

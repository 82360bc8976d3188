#pragma once
#include "ir/program.h"

namespace scalide {

/// Returns why a node cannot be part of a kernel of class `small`; empty if it can. Such a kernel runs on one thread and keeps its values
/// on the stack, so that a step of a loop over small arrays is one kernel. Each value has static extents and at most
/// `most_small_elements` elements, and a matmul has at most `most_small_products` products of f32 or integers. Matmuls of
/// low-precision numbers are in no such kernel, because class contract adds their products in pairs, with other bits.
std::string why_not_small(const Program &program, const Node &node);

constexpr int64_t most_small_elements = 4096;
constexpr int64_t most_small_products = 2048;

} // namespace scalide

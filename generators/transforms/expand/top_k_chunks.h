#pragma once
#include "transforms/splice.h"
#include "transforms/target_facts.h"

namespace scalide {

/// `top_k_places` as `top_k_by_chunks` (rules/sort/top_k.yaml), where sorting fewer elements pays for the kernels around; empty where it
/// does not, where extents are symbolic, and for other operators. The k first of n elements lie in the k chunks whose first elements come
/// first: these are sorted, then the elements in them.
Remake top_k_by_chunks(const Program &program, const Node &node, const SortCosts &costs);

} // namespace scalide

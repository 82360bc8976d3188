#pragma once
#include "transforms/analysis/splice.h"
#include "transforms/analysis/target_facts.h"

namespace scalide {

/// Returns a Remake that writes `top_k_places` as `top_k_by_chunks` (rules/sort/top_k.yaml), if sorting fewer elements saves more than the
/// additional kernels cost. Otherwise, for symbolic extents, and for other operators, the Remake is empty. The first k of n elements lie in
/// the k chunks whose maxima come first. So the maxima are sorted, and then the elements of these chunks.
Remake top_k_by_chunks(const Program &program, const Node &node, const SortCosts &costs);

} // namespace scalide

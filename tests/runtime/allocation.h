#pragma once
#include <atomic>

namespace scalide::test {

/// The runtime's allocations in this program: how many are alive, how many were made, and the number of the one that fails (-1: none).
extern std::atomic<int> allocations_live, allocations_made, allocation_to_fail;

} // namespace scalide::test

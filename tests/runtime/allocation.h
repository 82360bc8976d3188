#pragma once
#include <atomic>

namespace scalide::test {

/// The runtime's allocations in this program: alive, made so far, and which one (by number) fails; -1 = none.
extern std::atomic<int> allocations_live, allocations_made, allocation_to_fail;

} // namespace scalide::test

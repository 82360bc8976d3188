// Nothing leaks if a bind with constants runs out of memory.
#include "allocation.h"
#include "constants_program.h"

using namespace scalide::test;

TEST(runtime, constants_leak_nothing_without_memory) {
    const WeightedPlan plan;
    Context context(1);
    const int before = allocations_live;
    scalide_status status = SCALIDE_OUT_OF_MEMORY;
    for (int failing = 0; status == SCALIDE_OUT_OF_MEMORY; ++failing) {
        Weighted weighted(3);
        ASSERT_LT(failing, 20);
        scalide_binding *binding = nullptr;
        allocations_made = 0;
        allocation_to_fail = failing;
        status = scalide_bind(context.handle, &plan.main, weighted.arrays.data(), 3, &binding);
        allocation_to_fail = -1;
        scalide_binding_destroy(binding);
        EXPECT_EQ(allocations_live, before) << failing;
    }
    EXPECT_EQ(status, SCALIDE_OK);
}

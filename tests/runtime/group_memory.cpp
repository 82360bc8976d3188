#include "allocation.h"
#include "fixture.h"
#include "group_programs.h"
#include "group_threads.h"

using namespace scalide::test;

TEST(runtime, joins_binds_and_runs_without_memory) {
    const SumProgram net;
    SumArrays arrays(40, 4, 0);
    for (int failing = 0;; ++failing) {
        const int before = allocations_live;
        scalide_context *context = nullptr;
        scalide_binding *binding = nullptr;
        Echo echo;
        const scalide_transport table = echo.table();
        scalide_options options = {};
        options.struct_size = sizeof(options);
        options.threads = 1;
        ASSERT_EQ(scalide_context_create(&options, &context), SCALIDE_OK);
        allocations_made = 0;
        allocation_to_fail = failing;
        scalide_status status = scalide_join(context, "data", &table);
        if (status == SCALIDE_OK) status = scalide_bind(context, net.program, arrays.arrays().data(), 4, &binding);
        const bool is_bound = status == SCALIDE_OK;
        if (is_bound) status = scalide_run(binding);
        allocation_to_fail = -1;
        EXPECT_EQ(echo.aborts, is_bound && status != SCALIDE_OK ? 1 : 0) << failing;
        if (status != SCALIDE_OK) {
            EXPECT_EQ(status, SCALIDE_OUT_OF_MEMORY) << failing;
            EXPECT_NE(std::string(scalide_message(context)).find("out of memory"), std::string::npos) << scalide_message(context);
        }
        scalide_binding_destroy(binding);
        scalide_context_destroy(context);
        EXPECT_EQ(allocations_live, before) << failing;
        if (status == SCALIDE_OK) break;
        ASSERT_LT(failing, 100);
    }
    allocations_made = 0;
    allocation_to_fail = 0;
    scalide_thread_group *group = nullptr;
    char message[256];
    EXPECT_EQ(scalide_thread_group_create(2, 0, &group, message, sizeof(message)), SCALIDE_OUT_OF_MEMORY);
    allocation_to_fail = -1;
    EXPECT_STREQ(message, "scalide_thread_group_create: out of memory: cannot allocate a group of 2 ranks.");
}

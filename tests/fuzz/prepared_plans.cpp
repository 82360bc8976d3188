// Plans with a prepare program, where the tables of the program and of its prepare program contradict each other: scalide_prepare and bind
// refuse them, or kernels of both programs get memory that is there.
#include "fuzz/plan.h"
#include "fuzz/target.h"
#include "runtime/weighted_plan.h"

using namespace scalide;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    Choices choices(data, size);
    const test::WeightedPlan weighted;
    Plan plan(weighted.main, 0), prepare(weighted.prepare, 1);
    plan.program.prepare = &prepare.program;
    for (int i = 0; i < 6 && !choices.empty(); ++i) Changer(choices, choices.coin() ? plan : prepare).change();
    Arrays arrays(plan);
    const std::vector<scalide_array> &given = arrays.descriptors;
    const size_t count = static_cast<size_t>(std::clamp(plan.program.argument_count, 0, static_cast<int32_t>(given.size())));
    scalide_binding *binding = nullptr, *sharing = nullptr;
    scalide_constants *constants = nullptr;
    Plan::current[1] = 0;
    const scalide_status status = scalide_bind(context(), &plan.program, given.data(), count, &binding);
    expect(status == SCALIDE_OK || scalide_message(context())[0] != 0, "a refusal has words");
    Plan::current[1] = 0;
    const scalide_status prepared = scalide_prepare(context(), &plan.program, given.data(), count, &constants);
    expect(status != SCALIDE_OK || prepared == SCALIDE_OK, "the constants of a plan that is bound can be prepared");
    if (binding) {
        const scalide_status shared = scalide_bind_constants(context(), &plan.program, given.data(), count, constants, &sharing);
        expect(shared == SCALIDE_OK && scalide_set_constants(binding, constants) == SCALIDE_OK, "bindings share constants");
        for (scalide_binding *each : {binding, sharing}) {
            Plan::current[0] = 0;
            expect(scalide_run_traced(each, touch_array, nullptr) == SCALIDE_OK, "the plan runs");
        }
    }
    scalide_constants_destroy(constants);
    scalide_binding_destroy(binding);
    scalide_binding_destroy(sharing);
    return 0;
}

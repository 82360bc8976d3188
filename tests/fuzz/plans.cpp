// Plans whose tables contradict each other: bind refuses them, or what kernels, traces and checks are then given lies in the memory that
// the plan and the caller's arrays have.
#include "fuzz/plan.h"
#include "fuzz/target.h"
#include "runtime/sample_program.h"

namespace {

using namespace scalide;

void use(const Plan &plan, scalide_binding *binding) {
    scalide_non_finite first;
    double value;
    Plan::current[0] = 0;
    expect(scalide_run_traced(binding, touch_array, nullptr) == SCALIDE_OK, "the plan runs");
    Plan::current[0] = 0;
    expect(scalide_run_checked(binding, &first) == SCALIDE_OK, "the plan runs");
    for (const scalide_buffer &buffer : plan.buffers) static_cast<void>(scalide_read_scalar(binding, buffer.name, &value));
    static_cast<void>(scalide_symbol_value(binding, "b"));
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    Choices choices(data, size);
    Plan plan(*sample_program());
    Changer changer(choices, plan);
    for (int i = 0; i < 6 && !choices.empty(); ++i) changer.change();
    Arrays arrays(plan);
    std::vector<scalide_array> &given = arrays.descriptors;
    const size_t count = static_cast<size_t>(std::clamp(plan.program.argument_count, 0, static_cast<int32_t>(given.size())));
    scalide_binding *binding = nullptr;
    std::vector<scalide_array> shaped = given;
    const scalide_status shapes = scalide_shape_outputs(context(), &plan.program, shaped.data(), count);
    const scalide_status status = scalide_bind(context(), &plan.program, given.data(), count, &binding);
    expect(status != SCALIDE_OK || shapes == SCALIDE_OK, "a plan that is bound has shapes");
    expect(status == SCALIDE_OK || scalide_message(context())[0] != 0, "a refusal has words");
    if (binding) use(plan, binding);
    scalide_binding_destroy(binding);
    return 0;
}

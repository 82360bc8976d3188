#include "transforms/pipeline.h"
#include "fuzz/target.h"
#include "ir/text.h"
#include "support/programs/rules.h"
#include <algorithm>
#include <array>

namespace {

scalide::Policy shipped(const std::string &name) { return scalide::load_policy(SCALIDE_RULES_DIR "/policies/" + name + ".yaml"); }

} // namespace

// Any program becomes kernels in each of our numerics, or the error says why not. The number of its lines chooses the numerics.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    using namespace scalide;
    static const std::array policies = {shipped("f32"), shipped("bf16"), shipped("f16_scaled"), shipped("f8_scaled")};
    const std::string text = to_text(data, size);
    const auto lines = static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
    try {
        CompileOptions options;
        options.policy = policies[lines % policies.size()];
        compile(parse_program(text, "fuzz.scl"), rules(), options);
    } catch (const UserError &) {
    }
    return 0;
}

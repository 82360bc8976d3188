#include "fuzz/target.h"
#include "ir/text.h"
#include "support/programs/rules.h"
#include "transforms/pipeline.h"

namespace {

// A training step: arguments, products of values and of cotangents, and results of all roles that a policy has rows for.
const char *const training_step = R"(
program model(x: f32[b, 8], w: f32[8, 4]) -> (loss: f32[]) {
  d = dot_general(x, w) {contract: [[1], [0]]}
  e = tanh(d)
  loss = mean(e) {axes: [0, 1]}
}

program step(x: f32[b, 8], rate: f32[], w: f32[8, 4] inout) -> (loss: f32[], w = w_next) {
  loss, g = value_and_grad(x, w) {program: model, wrt: [w]}
  u = mul(g, rate)
  w_next = sub(w, u)
}
)";

} // namespace

// Any policy is applied to a training step, or the error says why not.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    using namespace scalide;
    static const Program program = parse_program(training_step, "step.scl");
    try {
        CompileOptions options;
        options.policy = parse_policy(to_text(data, size), "fuzz.yaml", SCALIDE_RULES_DIR "/policies");
        compile(program, rules(), options);
    } catch (const UserError &) {
    }
    return 0;
}

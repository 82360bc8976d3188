#include "support/programs/rules.h"
#include "fuzz/target.h"
#include "rulebook/check_operands.h"
#include "transforms/pipeline.h"

namespace {

using namespace scalide;

/// A program of each operator's first check case, plain and scaled, through all passes.
void use(const Rulebook &rulebook, const std::string &prefix) {
    for (const Rule *rule : rulebook.rules()) {
        if (rule->op.rfind(prefix, 0) != 0 || rule->check.cases.empty()) continue;
        for (const Scaled scaled : {Scaled::no, Scaled::yes}) {
            try {
                compile(check_program(rulebook, *rule, rule->check.cases[0], Dtype::f32, scaled), rulebook, {});
            } catch (const UserError &) {
            }
        }
    }
}

void read_policy(const std::string &text) try { parse_policy(text, "fuzz.yaml"); } catch (const UserError &) {
}

/// False: they use other rules.
bool read_alone(const std::string &text) try {
    Rulebook rulebook;
    rulebook.add(text, "fuzz.yaml");
    use(rulebook, "");
    return true;
} catch (const UserError &error) {
    return error.message().requirement.find("unknown function") == std::string::npos;
}

std::string renamed(std::string text) {
    for (size_t at = 0; (at = text.find("op: ", at)) != std::string::npos; at += 4) {
        if (at == 0 || text[at - 1] == '\n') text.insert(at + 4, "fuzz_");
    }
    return text;
}

/// Rules in addition to the rules of Scalide, under other names.
void read_beside_ours(const std::string &text) try {
    Rulebook rulebook = rules();
    rulebook.add(renamed(text), "fuzz.yaml");
    use(rulebook, "fuzz_");
} catch (const UserError &) {
}

} // namespace

// Rules are read and, where they are right, used; or the error says why not.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const std::string text = to_text(data, size);
    read_policy(text);
    if (!read_alone(text)) read_beside_ours(text);
    return 0;
}

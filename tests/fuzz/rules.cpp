#include "fuzz/target.h"
#include "rulebook/policy.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    using namespace scalide;
    const std::string text = to_text(data, size);
    try {
        Rulebook().add(text, "fuzz.yaml");
    } catch (const UserError &) {
    }
    try {
        parse_policy(text, "fuzz.yaml");
    } catch (const UserError &) {
    }
    return 0;
}

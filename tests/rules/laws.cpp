#include "interpret/laws.h"
#include "support/sanitized.h"
#include "transforms/analysis/passes.h"
#include <gtest/gtest.h>

namespace scalide {

namespace {

const Rulebook &rulebook() {
    static const Rulebook rules = Rulebook::load({SCALIDE_RULES_DIR});
    return rules;
}

/// The laws of one rule.
class Laws : public testing::Test {
public:
    explicit Laws(const Rule &rule) : rule_(rule) {}

    void TestBody() override {
        LawOptions options;
        if (is_sanitized) options.draws = 1;
        for (const Message &failure : check_laws(rule_, rulebook(), {propagate_scales, append_vjp}, options).failures)
            ADD_FAILURE() << UserError(failure).what();
    }

private:
    const Rule &rule_;
};

} // namespace

} // namespace scalide

int main(int argc, char **argv) {
    testing::InitGoogleTest(&argc, argv);
    for (const scalide::Rule *rule : scalide::rulebook().rules())
        testing::RegisterTest("rule", (rule->op + ".laws").c_str(), nullptr, nullptr, __FILE__, __LINE__,
                              [rule]() -> testing::Test * { return new scalide::Laws(*rule); });
    return RUN_ALL_TESTS();
}

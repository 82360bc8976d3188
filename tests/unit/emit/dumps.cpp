#include "emit/files.h"
#include "emit/library.h"
#include "ir/text.h"
#include <gtest/gtest.h>

using namespace scalide;

namespace {

void expect_dumps_parse_back(const std::string &file, const Rulebook &rulebook) {
    const Program program = parse_program(read_file(file), file);
    for (const char *policy : {"f32", "bf16", "f16_scaled", "f8_scaled"}) {
        std::vector<std::string> seen;
        const auto check = [&](const std::string &pass, const Program &after) {
            const std::string text = to_string(after);
            EXPECT_EQ(to_string(parse_program(text, "dump")), text) << policy << " after " << pass;
            EXPECT_TRUE(equal(parse_program(text, "dump"), after)) << policy << " after " << pass;
            seen.push_back(pass);
        };
        compile(program, rulebook,
                {load_policy(std::string(SCALIDE_RULES_DIR) + "/policies/" + policy + ".yaml"), target_facts({}), check});
        EXPECT_EQ(seen, std::vector<std::string>(pass_names().begin(), std::ranges::find(pass_names(), "fuse") + 1));
    }
}

} // namespace

TEST(emit, every_dump_parses_back_in_all_numerics) {
    const Rulebook rulebook = Rulebook::load({SCALIDE_RULES_DIR});
    const std::string tests = SCALIDE_TESTS_DIR;
    expect_dumps_parse_back(tests + "/emit/mlp.scl", rulebook);
    expect_dumps_parse_back(tests + "/fuzz/seeds/pipeline/names.scl", rulebook);
}

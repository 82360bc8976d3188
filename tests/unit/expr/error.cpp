#include "expr/error.h"
#include <gtest/gtest.h>

namespace scalide {
namespace {

std::string shown(const Message &message) { return UserError(message).what(); }

TEST(expr, messages_have_four_kinds) {
    const Location where{"f.yaml", 3};
    EXPECT_EQ(shown({where, "p.x", "must be f32", "f16", "Convert it"}), "f.yaml:3: p.x: must be f32, got f16. Convert it");
    EXPECT_EQ(shown(unknown_name(where, "key", "p.stor", "Did you mean 'store'?")),
              "f.yaml:3: unknown key 'p.stor'. Did you mean 'store'?");
    EXPECT_EQ(shown(failed_action("read f.scl", "No such file or directory")), "cannot read f.scl: No such file or directory");
    EXPECT_EQ(shown(failed_action("compile kernel k", "exit status 1", "Free memory", "a.c: error")),
              "cannot compile kernel k: exit status 1: a.c: error. Free memory");
    EXPECT_EQ(shown(relation_of(where, "insert", "cannot be used with", "keep")), "f.yaml:3: 'insert' cannot be used with 'keep'");
    EXPECT_EQ(shown(relation_of({}, "replace", "needs", "op", "Add it")), "'replace' needs 'op'. Add it");
    EXPECT_EQ(shown(statement(where, "this rule has no effect", "Delete it")), "f.yaml:3: this rule has no effect. Delete it");
}

TEST(expr, messages_show_control_characters) {
    EXPECT_EQ(shown({{"f\n.scl", 1, 2}, "p.a\nerror: b", "must be\tshort", "'\x1b[31m'", "Do\rso"}),
              R"(f\x0a.scl:1:2: p.a\x0aerror: b: must be\x09short, got '\x1b[31m'. Do\x0dso)");
}

TEST(expr, messages_keep_the_lines_that_a_program_printed) {
    EXPECT_EQ(shown(failed_action("make the plan with 'cc'", "exit status 1", "Install it", "a.c:1: error:\n\tx\x1b[0m")),
              "cannot make the plan with 'cc': exit status 1: a.c:1: error:\n\tx\\x1b[0m. Install it");
}

TEST(expr, messages_cut_what_is_very_long) {
    const std::string name(10'000'000, 'x');
    EXPECT_EQ(shown({{"f", 1}, name, "must be known", "", ""}), "f:1: " + std::string(300, 'x') + "... (10000000 bytes): must be known");
    EXPECT_LT(shown({{name}, name, name, name, name}).size(), 40'000u);
    std::string umlauts = "x"; // a character of two bytes is not cut
    for (int i = 0; i < 1000; i++) umlauts += "\xc3\xb6";
    EXPECT_EQ(shown({{}, umlauts, "must be known", "", ""}), umlauts.substr(0, 299) + "... (2001 bytes): must be known");
}

} // namespace
} // namespace scalide

#include "emit/c_text.h"
#include "emit/plan_text.h"
#include "expr/error.h"
#include <gtest/gtest.h>

namespace scalide {

TEST(emit, identifiers_are_those_of_c) {
    EXPECT_EQ(to_identifier("params.w"), "params_w");
    EXPECT_EQ(to_identifier("../a b"), "___a_b");
    EXPECT_EQ(to_identifier("7"), "_7");
    EXPECT_EQ(to_identifier("gr\u00f6\u00dfe"), "gr____e");
    EXPECT_EQ(to_identifier(""), "_");
}

TEST(emit, members_of_a_header_have_identifiers_of_their_own) {
    Identifiers identifiers;
    identifiers.reserve("P_ARGUMENT_COUNT");
    const auto member = [&](const std::string &name) { return identifiers.member("p_", name); };
    EXPECT_EQ(member("a.b"), "a_b");
    EXPECT_EQ(member("a_b"), "a_b_1");
    EXPECT_EQ(member("A/B"), "A_B_2") << "enumerators are in capitals";
    EXPECT_EQ(member("int"), "int_1");
    EXPECT_EQ(member("class"), "class_1");
    EXPECT_EQ(member("integer"), "integer");
    EXPECT_EQ(member("argument count"), "argument_count_1");
    EXPECT_EQ(identifiers.member("p_a_", "b"), "b_3") << "P_A_B, _1 and _2 are there";
}

TEST(emit, literals_hold_any_text) {
    EXPECT_EQ(to_c_string("a\"b\\c??/"), R"("a\"b\\c\?\?/")");
    EXPECT_EQ(to_c_string("a\nb"), "\"a\\n\"\n    \"b\"");
    EXPECT_EQ(to_c_string("\x1b"
                          "7\xc3\xa9\x7f"),
              R"("\0337\303\251\177")");
}

TEST(emit, comments_end_where_they_should) {
    EXPECT_EQ(to_comment("a */ b /* c */*/"), "a * / b / * c * / * /");
    EXPECT_EQ(to_comment("/*/"), "/ * /");
    EXPECT_EQ(to_comment("a\nb"), "a\n * b");
}

TEST(emit, programs_of_a_library_have_different_c_names) {
    const auto error_of = [](const std::string &first, const std::string &second) -> std::string {
        BuiltPrograms programs(2, ProgramForms<BuiltForm>(1));
        programs[0][0].main.plan.name = first;
        programs[1][0].main.plan.name = second;
        try {
            check_identifiers(programs);
        } catch (const UserError &error) {
            return error.what();
        }
        return "no error";
    };
    const std::string same = " of one library have the same C name, ",
                      rename = ". Rename one. The names must differ in more than capital letters";
    EXPECT_EQ(error_of("a.b", "a b"), "programs a.b and \"a b\"" + same + "a_b" + rename);
    EXPECT_EQ(error_of("ab", "AB"), "programs ab and AB" + same + "AB" + rename);
    EXPECT_EQ(error_of("ab", "a_b"), "no error");
}

} // namespace scalide

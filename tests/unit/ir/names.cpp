#include "ir/program.h"
#include <gtest/gtest.h>

namespace scalide {

namespace {

std::string added(Program &program, const std::string &name) { return program.value_name(add_value(program, name, {Dtype::f32, {}})); }

} // namespace

TEST(ir, fresh_names_take_the_first_number_that_is_free) {
    Program program;
    for (const char *taken : {"x2", "x01", "y"}) program.values.push_back({taken, {Dtype::f32, {}}});
    EXPECT_EQ(added(program, "x"), "x");
    EXPECT_EQ(added(program, "x"), "x1");
    EXPECT_EQ(added(program, "x"), "x3");
    EXPECT_EQ(added(program, "x1"), "x11");
    program.values.push_back({"x4", {Dtype::f32, {}}}); // not by add_value
    EXPECT_EQ(added(program, "x"), "x5");
}

TEST(ir, renamed_values_leave_their_names) {
    Program program;
    for (int i = 0; i < 14; i++) added(program, "x");
    EXPECT_FALSE(rename_value(program, 12, "x3"));
    EXPECT_EQ(program.value_name(12), "x12");
    EXPECT_TRUE(rename_value(program, 12, "y"));
    EXPECT_EQ(added(program, "y"), "y1");
    EXPECT_EQ(added(program, "x"), "x14"); // numbers count up
    EXPECT_EQ(added(program, "x12"), "x12");
    Program copy = program;
    EXPECT_EQ(added(copy, "x"), "x15");
}

} // namespace scalide

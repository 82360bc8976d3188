#include "tool/operator_programs.h"
#include "ir/verify.h"
#include "support/programs/rules.h"
#include <algorithm>
#include <gtest/gtest.h>

namespace scalide {

namespace {

TEST(tool, every_operator_becomes_functions_of_a_library) {
    const std::vector<LibraryProgram> programs = operator_programs(rules(), {{"all"}, {Dtype::f32, Dtype::f8_e4m3fn}});
    for (const LibraryProgram &each : programs) EXPECT_NO_THROW(verify(each.program, each.program.name)) << each.program.name;
    for (const char *name :
         {"add_f32", "add_f32_scaled", "add_f8_e4m3fn", "add_f8_e4m3fn_scaled", "population_count", "softmax_f8_e4m3fn_scaled"})
        EXPECT_EQ(std::ranges::count(programs, name, [](const LibraryProgram &each) { return each.program.name; }), 1) << name;
}

} // namespace

} // namespace scalide

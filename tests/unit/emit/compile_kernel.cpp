#include "emit/compile_kernel.h"
#include <gtest/gtest.h>

namespace scalide {

TEST(emit, an_error_of_halide_has_words) {
    EXPECT_EQ(words_of(Halide::CompileError("Error: no such Func\n")), "Error: no such Func");
    EXPECT_EQ(words_of(Halide::InternalError("Error: \n")), "Halide failed an assertion without a text; HL_DEBUG_CODEGEN=1 shows where");
}

} // namespace scalide

// An application may include the C++ interface of the runtime together with the DSL, whose names are in namespace scalide.
#include "frontend/generator.h"
#include "frontend/reductions.h"
#include "frontend/tree.h"
#include "scalide/scalide.hpp"
#include <gtest/gtest.h>

namespace {

using namespace scalide;

TEST(frontend, the_dsl_and_the_cpp_interface_of_the_runtime_share_a_source) {
    const runtime::Context context(1);
    const runtime::Array array(context, SCALIDE_F16, {2, 2});
    EXPECT_EQ(array.get<float>(), std::vector<float>(4));
    EXPECT_EQ(static_cast<int32_t>(Dtype::f16), array.dtype());
}

} // namespace

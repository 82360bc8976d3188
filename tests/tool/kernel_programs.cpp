#include "tool/kernel_programs.h"
#include "ir/verify.h"
#include "support/programs/rules.h"
#include "tool/operators.h"
#include <algorithm>
#include <gtest/gtest.h>

namespace scalide {

namespace {

TEST(tool, every_operator_becomes_functions_of_a_library) {
    std::vector<LibraryProgram> programs;
    for (const LibraryKernel &kernel : default_kernels(rules(), "all", {Dtype::f32, Dtype::f8_e4m3fn}))
        for (LibraryProgram &program : kernel_programs(rules(), kernel, "own")) programs.push_back(std::move(program));
    for (const LibraryProgram &each : programs) EXPECT_NO_THROW(verify(each.program, each.program.name)) << each.program.name;
    for (const char *name : {"own_add_f32", "own_add_f32_scaled", "own_add_f8_e4m3fn", "own_add_f8_e4m3fn_scaled", "own_population_count",
                             "own_softmax_f8_e4m3fn_scaled"})
        EXPECT_EQ(std::ranges::count(programs, name, [](const LibraryProgram &each) { return each.program.name; }), 1) << name;
}

TEST(tool, functions_of_operators_let_axes_and_pairs_be_left_out) {
    const std::string header = operators_header(rules());
    for (const char *part :
         {"inline Tensor mean(const Operand &x, const std::vector<int64_t> &axes = all_axes, ",
          "    if (axes != all_axes) attributes[\"axes\"] = to_attribute(axes);\n",
          "dot_general(const Operand &lhs, const Operand &rhs, const AxisPairs &contract, const AxisPairs &batch = no_axis_pairs, ",
          "const WindowPadding &padding = default_padding, ",
          "    if (padding != default_padding) attributes[\"padding\"] = padding.attribute;\n",
          "    attributes[\"contract\"] = to_attribute(contract);\n    if (batch != no_axis_pairs) "})
        EXPECT_NE(header.find(part), std::string::npos) << part;
}

} // namespace

} // namespace scalide

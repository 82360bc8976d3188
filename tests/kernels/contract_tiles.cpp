#include "kernels/contract_cases.h"
#include "kernels/kernel_text.h"
#include <gtest/gtest.h>

// Which products use the tiles of AMX or pairs of bf16, from the assembly for such a CPU. Every machine can make it. The tests
// kernel.tiles.* run kernels.

namespace scalide::contract_test {
namespace {

std::string assembly_of(const std::string &text) { return scalide::assembly_of(parse_program(text, "k"), with_tiles(kernel_target())); }

struct TileCase {
    std::string lhs, rhs, result, instruction;
    friend void PrintTo(const TileCase &each, std::ostream *out) { *out << each.lhs << " by " << each.rhs; }
};

class Tiles : public testing::TestWithParam<TileCase> {
protected:
    Form form() const {
        return {
            .lhs_dtype = GetParam().lhs, .rhs_dtype = GetParam().rhs, .result_dtype = GetParam().result, .m = "64", .n = "64", .k = "256"};
    }
};

TEST_P(Tiles, multiply_with_four_instructions) {
    const std::string text = assembly_of(form().text());
    EXPECT_EQ(count_words(text, GetParam().instruction), 4u) << "two by two tiles";
    EXPECT_EQ(count_words(text, "tileloadd"), 4u) << "no tile is spilled";
}

TEST_P(Tiles, are_configured_once_a_task) { EXPECT_EQ(count_words(assembly_of(form().text()), "ldtilecfg"), 1u); }

/// LLVM configures tiles again after each call, also in a loop that packs an operand.
TEST_P(Tiles, call_nothing_while_operands_end_within_a_tile) {
    for (const bool lhs_transposed : {false, true}) {
        Form each = form();
        each.m = "33", each.n = "40", each.k = "17";
        each.lhs_transposed = lhs_transposed;
        const std::string text = assembly_of(each.text());
        EXPECT_EQ(count_words(text, "memset"), 0u) << each.name();
        EXPECT_EQ(count_words(text, "ldtilecfg"), 1u) << each.name();
    }
}

/// A left operand in memory as it is multiplied needs no copy, if it ends with whole tiles.
TEST_P(Tiles, read_the_left_operand_directly) {
    Form each = form();
    each.n = "256";
    const auto copies = [&] { return count_words(assembly_of(each.text()), "par_for_lhs") != 0; };
    EXPECT_EQ(copies(), each.lhs_dtype == "f8_e4m3fn");
    each.m = "70";
    EXPECT_TRUE(copies()) << "rows beyond the operand";
}

TEST_P(Tiles, are_not_for_few_rows_columns_or_terms) {
    for (const auto &[m, n, k] : std::vector<std::array<std::string, 3>>{{"4", "n", "k"}, {"m", "4", "k"}, {"m", "n", "4"}}) {
        Form each = form();
        each.m = m, each.n = n, each.k = k;
        EXPECT_EQ(count_words(assembly_of(each.text()), GetParam().instruction), 0u) << m << " " << n << " " << k;
    }
}

INSTANTIATE_TEST_SUITE_P(contract, Tiles,
                         testing::Values(TileCase{"bf16", "bf16", "f32", "tdpbf16ps"}, TileCase{"f8_e4m3fn", "f8_e5m2", "f32", "tdpbf16ps"},
                                         TileCase{"bf16", "f8_e4m3fn", "f32", "tdpbf16ps"}, TileCase{"i8", "i8", "i32", "tdpbssd"},
                                         TileCase{"i8", "u8", "i32", "tdpbsud"}, TileCase{"u8", "i8", "i32", "tdpbusd"},
                                         TileCase{"u8", "u8", "u32", "tdpbuud"}),
                         [](const auto &info) { return info.param.lhs + "_" + info.param.rhs; });

TEST(contract, tiles_need_exact_bf16_or_bytes) {
    for (const char *dtype : {"f32", "f16"}) {
        const Form form{.lhs_dtype = dtype, .rhs_dtype = "bf16"};
        EXPECT_EQ(count_words(assembly_of(form.text()), "tdpbf16ps"), 0u) << dtype;
    }
}

std::string assembly_of_convolution(const std::string &name, const Halide::Target &target) {
    for (const std::filesystem::path &path : kernel_texts())
        if (path.filename() == name + ".scl") return scalide::assembly_of(read_kernel_text(path).program, target);
    throw std::runtime_error("no kernel text " + name);
}

TEST(convolution, multiplies_by_tiles) {
    for (const std::string name : {"conv_tiles_images", "conv_tiles_weights"}) {
        const std::string text = assembly_of_convolution(name, with_tiles(kernel_target()));
        EXPECT_EQ(count_words(text, "tdpbf16ps"), 4u) << name << ": two by two tiles";
        EXPECT_EQ(count_words(text, "tileloadd"), 4u) << name << ": no tile is spilled";
        EXPECT_EQ(count_words(text, "ldtilecfg"), 1u) << name << ": once a task";
    }
    EXPECT_EQ(count_words(assembly_of_convolution("conv_pairs", with_tiles(kernel_target())), "tdpbf16ps"), 0u) << "6 input features";
}

TEST(convolution, multiplies_pairs_where_that_is_fast) {
    for (const std::string name : {"conv_pairs", "conv_pairs_blocks", "conv_pairs_gaps", "conv_pairs_weights"})
        EXPECT_NE(count_words(assembly_of_convolution(name, pairs_target()), "vdpbf16ps"), 0u) << name;
}

} // namespace
} // namespace scalide::contract_test

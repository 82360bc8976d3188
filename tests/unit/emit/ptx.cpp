#include "emit/ptx.h"
#include "expr/error.h"
#include <gtest/gtest.h>

namespace scalide {
namespace {

const std::string kernel = R"(.version 7.0
.target sm_80
.address_size 64
.visible .entry k(
	.param .u64 k_param_0
)
{
	mov.b32 	%r2, 1554062608;
	dp4a.s32.u32 	%r3, %r1, 0, %r2;
}
)"; // 0x5ca11d10: e4m3_to_f32

TEST(ptx, marks_become_instructions_of_the_set) {
    const std::string older = rewrite_ptx(kernel, InstructionSet::sm_80, {}), newer = rewrite_ptx(kernel, InstructionSet::sm_89, {});
    EXPECT_EQ(older.find("e4m3x2"), std::string::npos);
    EXPECT_NE(newer.find("cvt.rn.f16x2.e4m3x2"), std::string::npos);
    EXPECT_NE(older.find(".target sm_80"), std::string::npos);
    EXPECT_NE(newer.find(".target sm_89"), std::string::npos);
    EXPECT_NE(newer.find("mov.b32 %r3, %f;"), std::string::npos) << newer;
}

/// LLVM packs two halves by prmt.
TEST(ptx, two_conversions_become_one) {
    const auto converted = [](const std::string &d, const std::string &a) {
        return "\tdp4a.s32.u32 \t" + d + ", " + a + ", 0, 1554062688;\n";
    };
    const std::string packs = "\tprmt.b32 \t%r9, %r6, %r7, 0x5410U;\n", both = converted("%r6", "%r4") + converted("%r7", "%r5");
    const auto rewritten = [&](const std::string &lines) {
        std::string changed = kernel;
        return rewrite_ptx(changed.replace(changed.find("\tmov"), 0, lines), InstructionSet::sm_80, {});
    };
    EXPECT_NE(rewritten(both + packs).find("mov.b32 %f, %r4; mov.b32 %g, %r5; cvt.rn.bf16x2.f32 %r9, %g, %f; }"), std::string::npos);
    EXPECT_NE(rewritten(both + "\tshl.b32 \t%r9, %r7, 16;\n").find("mov.b32 %f, %r5; mov.b32 %z, 0; cvt.rn.bf16x2.f32 %r9, %f, %z; }"),
              std::string::npos);
    for (const std::string changes : {"\tadd.s32 \t%r4, %r4, 1;\n", "\tmov.b32 \t%r7, 0;\n", "$L__BB0_1:\n"})
        EXPECT_NE(rewritten(both + changes + packs).find(packs), std::string::npos) << changes;
}

TEST(ptx, entries_know_their_threads) {
    EXPECT_NE(rewrite_ptx(kernel, InstructionSet::sm_80, {{"k", 96}}).find(")\n.maxntid 96\n{"), std::string::npos);
    EXPECT_NE(rewrite_ptx(kernel, InstructionSet::sm_80, {{"k", 96}}, 300).find(")\n.maxntid 96\n.minnctapersm 3\n{"), std::string::npos);
    EXPECT_EQ(rewrite_ptx(kernel, InstructionSet::sm_80, {{"k", 96}}, 96).find(".minnctapersm"), std::string::npos);
    EXPECT_EQ(rewrite_ptx(kernel, InstructionSet::sm_80, {{"other", 96}}).find(".maxntid"), std::string::npos);
}

/// From sm_90 on the first kilobyte is the system's: only a variable's address is ours.
TEST(ptx, shared_memory_is_where_the_card_has_it) {
    const auto rewritten = [](const std::string &access) {
        std::string text = kernel;
        text.replace(text.find("\tmov"), 0, access + "\n");
        return rewrite_ptx(text, InstructionSet::sm_89, {});
    };
    EXPECT_NE(rewritten("").find(".address_size 64\n.extern .shared .align 16 .b8 block_memory[];\n"), std::string::npos);
    EXPECT_NE(rewritten("\tst.shared.b32 \t[%rd1], %r1;").find("add.s64 %at, %at, %rd1;\tst.shared.b32 \t[%at], %r1; }"),
              std::string::npos);
    EXPECT_NE(rewritten("\tld.shared.v2.b32 \t{%r1, %r2}, [%rd3+-8];").find(", %rd3;\tld.shared.v2.b32 \t{%r1, %r2}, [%at+-8]; }"),
              std::string::npos);
    EXPECT_NE(rewritten("\tst.shared.b32 \t[128], %r1;").find("\n\tst.shared.b32 \t[block_memory+128], %r1;"), std::string::npos);
}

/// floor(-1e-40) is -1 on all targets.
TEST(ptx, subnormal_numbers_stay) {
    std::string text = kernel;
    text.replace(text.find("\tmov"), 0, "\tcvt.rmi.ftz.f32.f32 \t%r5, %r4;\n");
    EXPECT_NE(rewrite_ptx(text, InstructionSet::sm_89, {}).find("\n\tcvt.rmi.f32.f32 \t%r5, %r4;\n"), std::string::npos);
}

TEST(ptx, sums_and_products_are_rounded) {
    std::string text = kernel;
    text.replace(text.find("\tmov"), 0,
                 "\tmul.f32 \t%r5, %r4, %r4;\n\tsub.f64 \t%rd5, %rd4, %rd3;\n\tadd.rn.f32 \t%r6, %r5, %r5;\n\tadd.s32 \t%r7, %r6, 1;\n");
    EXPECT_NE(rewrite_ptx(text, InstructionSet::sm_89, {})
                  .find("\n\tmul.rn.f32 \t%r5, %r4, %r4;\n\tsub.rn.f64 \t%rd5, %rd4, %rd3;\n\tadd.rn.f32 \t%r6, %r5, %r5;\n\tadd.s32 "
                        "\t%r7, %r6, 1;\n"),
              std::string::npos);
}

TEST(ptx, unknown_marks_are_errors) {
    std::string text = kernel;
    text.replace(text.find("1554062608"), 10, "1554062592");
    EXPECT_THROW(rewrite_ptx(text, InstructionSet::sm_80, {}), InternalError);
    text = kernel;
    text.replace(text.find("dp4a.s32.u32"), 12, "dp4a.s32.s32");
    EXPECT_THROW(rewrite_ptx(text, InstructionSet::sm_80, {}), InternalError);
}

TEST(ptx, cards_have_an_instruction_set) {
    EXPECT_EQ(instruction_set(80), InstructionSet::sm_80);
    EXPECT_EQ(instruction_set(86), InstructionSet::sm_80);
    EXPECT_EQ(instruction_set(89), InstructionSet::sm_89);
    EXPECT_EQ(instruction_set(120), InstructionSet::sm_89);
}

} // namespace
} // namespace scalide

// Every rule of a matmul: a descriptor that keeps it and one that breaks it alone, with the words it gives.
#include "descs.h"
#include <gtest/gtest.h>
#include <set>

namespace scalide {

namespace {

struct Broken {
    std::string rule;
    void (*change)(MatmulDesc &, MatmulDevice &);
    std::string words;
};

const std::vector<Broken> cases = {
    {"extents.positive", [](MatmulDesc &d, MatmulDevice &) { d.n = 0; }, "extents must be positive, got m 64, n 0, k 128, batch 1."},
    {"types.pair", [](MatmulDesc &d, MatmulDevice &) { d.a.dtype = d.b.dtype = SCALIDE_F8_E5M2; }, "got f8_e5m2 x f8_e5m2."},
    {"types.pair", [](MatmulDesc &d, MatmulDevice &) { d.b.dtype = SCALIDE_F16; }, "got f8_e4m3fn x f16."},
    {"types.device", [](MatmulDesc &, MatmulDevice &g) { g.capability = 80; }, "f8 operands need sm_89 or later, got sm_80."},
    {"types.result", [](MatmulDesc &d, MatmulDevice &) { d.d.dtype = SCALIDE_F8_E5M2; }, "got f8_e4m3fn x f8_e4m3fn -> f8_e5m2."},
    {"types.result", [](MatmulDesc &d, MatmulDevice &) { d.a.dtype = d.b.dtype = SCALIDE_BF16, d.d.dtype = SCALIDE_F16; },
     "got bf16 x bf16 -> f16."},
    {"types.addend", [](MatmulDesc &d, MatmulDevice &) { d.c = d.d, d.c.dtype = SCALIDE_F32; }, "got f32 for bf16."},
    {"types.addend", [](MatmulDesc &d, MatmulDevice &) { d.c = d.d = d.a, d.d.leading = d.c.leading = d.n, d.d.scale = ScaleMode::none; },
     "got f8_e4m3fn for f8_e4m3fn."},
    {"types.bias",
     [](MatmulDesc &d, MatmulDevice &) { d.epilogue = MatmulEpilogue::bias, d.d.dtype = SCALIDE_F32, d.bias_dtype = SCALIDE_F32; },
     "bias for result f32 must be bf16, got f32."},
    {"types.tf32", [](MatmulDesc &d, MatmulDevice &) { d.tf32 = true; }, "TF32 needs f32 operands and sm_80 or later"},
    {"types.bias",
     [](MatmulDesc &d, MatmulDevice &) {
         d.d.dtype = SCALIDE_F8_E4M3FN, d.c = d.d, d.c.dtype = SCALIDE_F16;
         d.epilogue = MatmulEpilogue::bias, d.bias_dtype = SCALIDE_BF16;
     },
     "bias for result f8_e4m3fn must be f16, got bf16."},
    {"factor.f8", [](MatmulDesc &d, MatmulDevice &) { d.has_factor = true; }, "got f8_e4m3fn x f8_e4m3fn."},
    {"factor.addend", [](MatmulDesc &d, MatmulDevice &) { d.has_addend_factor = true; }, "a factor of the addend needs an addend."},
    {"layouts.contiguous_k", [](MatmulDesc &d, MatmulDevice &) { d.b.k_contiguous = false; }, "got a [m, k], b [k, n] on sm_90."},
    {"layouts.rows", [](MatmulDesc &d, MatmulDevice &) { d.d.leading = 80; }, "got a 128, b 128, d 80."},
    {"extents.k16", [](MatmulDesc &d, MatmulDevice &) { d.k = 100; }, "must be a multiple of 16 for f8 operands, got 100."},
    {"extents.n16", [](MatmulDesc &d, MatmulDevice &) { d.n = 84; }, "rows of the result must be multiples of 16 bytes, got 84 of bf16."},
    {"extents.m16", [](MatmulDesc &d, MatmulDevice &) { d.m = 15; }, "must be a multiple of 16 for f8 operands, got 15."},
    {"alignment.matrices", [](MatmulDesc &d, MatmulDevice &) { d.b.alignment = 8; }, "got a 256, b 8, d 256."},
    {"alignment.rows", [](MatmulDesc &d, MatmulDevice &) { d.a.leading = 136; }, "got a 136, b 128, d 96."},
    {"alignment.scales", [](MatmulDesc &d, MatmulDevice &) { d.a.scale = d.b.scale = ScaleMode::outer_vec, d.b.scale_alignment = 4; },
     "got a 256, b 4."},
    {"alignment.scales", [](MatmulDesc &d, MatmulDevice &) { d.a.scale_alignment = 8; }, "got a 8, b 256."},
    {"alignment.scales",
     [](MatmulDesc &d, MatmulDevice &) { d.d.dtype = SCALIDE_F8_E4M3FN, d.d.scale = ScaleMode::tensor, d.d.scale_alignment = 8; },
     "got a 256, b 256, d 8."},
    {"scales.f8", [](MatmulDesc &d, MatmulDevice &) { d.a.dtype = d.b.dtype = SCALIDE_BF16; }, "only f8 operands can have scales"},
    {"scales.device", [](MatmulDesc &d, MatmulDevice &g) { d.a.scale = d.b.scale = ScaleMode::outer_vec, g.capability = 89; },
     "got outer_vec x outer_vec on sm_89 with cuBLAS 130100."},
    {"scales.device", [](MatmulDesc &d, MatmulDevice &) { d.a.scale = d.b.scale = ScaleMode::vec32_ue8m0; }, "vec32_ue8m0 on sm_90"},
    {"scales.device", [](MatmulDesc &d, MatmulDevice &g) { d.a.scale = d.b.scale = ScaleMode::vec128, g.library = 120800; },
     "with cuBLAS 120800."},
    {"scales.pair", [](MatmulDesc &d, MatmulDevice &) { d.a.scale = ScaleMode::outer_vec; }, "got outer_vec x tensor."},
    {"scales.pair", [](MatmulDesc &d, MatmulDevice &) { d.a.scale = d.b.scale = ScaleMode::blk128x128; }, "got blk128x128 x blk128x128."},
    {"scales.k", [](MatmulDesc &d, MatmulDevice &) { d.a.scale = d.b.scale = ScaleMode::vec128, d.k = d.a.leading = d.b.leading = 144; },
     "must be a multiple of the scale block, got 144."},
    {"scales.result", [](MatmulDesc &d, MatmulDevice &) { d.d.scale = ScaleMode::tensor; },
     "only an f8 result can have a scale, one per tensor, got tensor of bf16."},
    {"scales.result_f8", [](MatmulDesc &d, MatmulDevice &) { d.a.scale = d.b.scale = ScaleMode::outer_vec, d.d.dtype = SCALIDE_F8_E4M3FN; },
     "result must be f32, f16 or bf16 if operands have one scale per row or block, got f8_e4m3fn."},
    {"amax.result", [](MatmulDesc &d, MatmulDevice &) { d.amax = true; }, "only an f8 result can have an amax, got bf16."},
    {"accumulation.f8",
     [](MatmulDesc &d, MatmulDevice &) {
         d.a.dtype = d.b.dtype = SCALIDE_BF16;
         d.a.scale = d.b.scale = ScaleMode::none;
         d.fast_accumulation = true;
     },
     "fast accumulation needs f8 operands, got bf16 x bf16."},
    {"accumulation.blocks", [](MatmulDesc &d, MatmulDevice &) { d.a.scale = d.b.scale = ScaleMode::vec128, d.fast_accumulation = true; },
     "fast accumulation cannot be used with one scale per block, got vec128 x vec128."},
    {"epilogue.blocks",
     [](MatmulDesc &d, MatmulDevice &) {
         d.a.scale = ScaleMode::vec128, d.b.scale = ScaleMode::blk128x128, d.epilogue = MatmulEpilogue::relu;
     },
     "epilogue must be none or bias if operands have one scale per block, got vec128 x blk128x128."},
    {"batch.scales", [](MatmulDesc &d, MatmulDevice &) { d.a.scale = d.b.scale = ScaleMode::outer_vec, d.batch = 2; }, "batch 2."},
};

std::string words_of(const MatmulDesc &desc, const MatmulDevice &device) {
    char memory[512];
    Text text(memory, sizeof(memory));
    const MatmulRule *rule = broken_rule(desc, device);
    if (rule) explain(*rule, desc, device, text);
    return rule ? memory : "";
}

} // namespace

TEST(matmul, rules_are_broken_one_by_one) {
    for (const Broken &broken : cases) {
        MatmulDesc desc = f8_matmul(64, 96, 128);
        MatmulDevice device = hopper();
        EXPECT_EQ(words_of(desc, device), "");
        broken.change(desc, device);
        const MatmulRule *rule = broken_rule(desc, device);
        ASSERT_NE(rule, nullptr) << broken.rule;
        EXPECT_EQ(rule->id, broken.rule);
        const std::string words = words_of(desc, device);
        EXPECT_NE(words.find(broken.words), std::string::npos) << words;
        EXPECT_EQ(words.find("matmul." + std::string(rule->field) + ": "), 0u) << words;
    }
}

TEST(matmul, each_rule_has_a_case) {
    std::set<std::string> tried, all;
    for (const Broken &broken : cases) tried.insert(broken.rule);
    const MatmulRules rules = matmul_rules();
    for (size_t i = 0; i < rules.count; ++i) EXPECT_TRUE(all.insert(rules.rules[i].id).second) << rules.rules[i].id << " stands twice";
    EXPECT_EQ(tried, all);
}

TEST(matmul, good_ones_pass) {
    for (const NamedDesc &matmul : f8_layer(8192, 4096, 16384)) EXPECT_EQ(words_of(matmul.desc, hopper()), "") << matmul.name;
    MatmulDesc blocks = f8_matmul(128, 256, 512);
    blocks.a.scale = ScaleMode::vec128, blocks.b.scale = ScaleMode::blk128x128;
    EXPECT_EQ(words_of(blocks, hopper()), "");
    MatmulDesc mx = f8_matmul(128, 256, 512);
    mx.a.scale = mx.b.scale = ScaleMode::vec32_ue8m0, mx.a.k_contiguous = false, mx.a.leading = 128;
    EXPECT_EQ(words_of(mx, {100, 130100}), "");
    MatmulDesc odd = f8_matmul(7, 5, 3);
    odd.a.dtype = odd.b.dtype = odd.d.dtype = SCALIDE_F32, odd.a.scale = odd.b.scale = ScaleMode::none, odd.tf32 = true;
    odd.c = odd.d;
    EXPECT_EQ(words_of(odd, {80, 120400}), "");
}

} // namespace scalide

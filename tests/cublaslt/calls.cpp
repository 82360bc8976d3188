// Checks the calls of the runtime to cuBLASLt one by one, on an emulated library.
#include "fixture.h"
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <regex>

namespace scalide {

namespace {

/// Told from each other by their values: the stand-in reads factors as numbers.
std::string name_of_factor(const std::string &number) {
    return number == "1.000000" ? "one" : number == "0.000000" ? "zero" : number == "2.000000" ? "factor" : "addend_factor";
}

} // namespace

/// `alpha <name> beta <name>`: what a run reads.
std::string cublaslt_test::factors_of(const MatmulDesc &desc) {
    Matmul matmul(*library_);
    constexpr float zero = 0, one = 1, factor = 2, addend_factor = 3;
    MatmulPointers pointers = pointers_of(desc);
    pointers.zero = &zero, pointers.one = &one, pointers.factor = &factor, pointers.addend_factor = &addend_factor;
    char memory[512] = "";
    Text why(memory, sizeof(memory));
    EXPECT_TRUE(matmul.prepare(desc, hopper(), pointers, why) && matmul.choose(stream(), MatmulSearch::heuristic, nullptr, "", why))
        << memory;
    reset();
    EXPECT_EQ(matmul.run(stream().handle, stream().stream), 0);
    const std::string log = state().log;
    EXPECT_EQ(log.find(" 2=1") != std::string::npos, desc.has_factor || desc.has_addend_factor) << log;
    std::smatch found;
    EXPECT_TRUE(std::regex_search(log, found, std::regex("alpha (\\S+) beta (\\S+)"))) << log;
    return "alpha " + name_of_factor(found[1]) + " beta " + name_of_factor(found[2]);
}

/// The descriptors of a layer's FP8 training step, field by field. SCALIDE_UPDATE_GOLDEN=1 rewrites them.
TEST_F(cublaslt_test, training_step) {
    std::string got;
    for (const NamedDesc &named : f8_layer(8192, 4096, 16384)) {
        Matmul matmul(*library_);
        ASSERT_EQ(make_ready(matmul, named.desc), "");
        got += "# " + named.name + "\n" + std::string(state().log, std::string(state().log).find("\nmatmul") + 1);
        reset();
        ASSERT_EQ(matmul.run(stream().handle, stream().stream), 0);
        got += state().log;
        reset();
    }
    if (std::getenv("SCALIDE_UPDATE_GOLDEN")) std::ofstream(SCALIDE_MATMUL_GOLDEN) << got;
    std::ifstream golden(SCALIDE_MATMUL_GOLDEN);
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(golden), {}), got);
}

TEST_F(cublaslt_test, a_run_only_multiplies) {
    Matmul matmul(*library_);
    ASSERT_EQ(make_ready(matmul, f8_matmul(64, 96, 128)), "");
    reset();
    EXPECT_EQ(matmul.run(stream().handle, stream().stream), 0);
    EXPECT_EQ(state().calls, 1);
}

TEST_F(cublaslt_test, each_call_may_fail_once) {
    const MatmulDesc desc = f8_layer(64, 96, 128).back().desc;
    const int before = state().live;
    int calls = 0;
    {
        Matmul matmul(*library_);
        ASSERT_EQ(make_ready(matmul, desc), "");
        calls = state().calls;
    }
    ASSERT_GT(calls, 20);
    for (int failing = 0; failing < calls; ++failing) {
        reset(failing, 1);
        {
            Matmul matmul(*library_);
            const std::string why = make_ready(matmul, desc);
            EXPECT_TRUE(why.starts_with("cublasLt") || why.starts_with("cuBLASLt")) << "call " << failing << ": " << why;
        }
        EXPECT_EQ(state().live, before) << "call " << failing;
    }
    reset();
    Matmul matmul(*library_);
    EXPECT_EQ(make_ready(matmul, desc), "");
}

TEST_F(cublaslt_test, a_broken_rule_asks_nothing) {
    Matmul matmul(*library_);
    EXPECT_EQ(make_ready(matmul, f8_matmul(64, 96, 100)), "matmul.k: must be a multiple of 16 for f8 operands, got 100. Fixed extents are "
                                                          "padded with zeros; declare a symbol with step 16. [extents.k16]");
    EXPECT_EQ(state().calls, 0);
}

TEST_F(cublaslt_test, batches_and_addends) {
    MatmulDesc desc = f8_matmul(64, 96, 128);
    desc.a.dtype = desc.b.dtype = desc.d.dtype = SCALIDE_F16;
    desc.a.scale = desc.b.scale = ScaleMode::none;
    desc.a.k_contiguous = false, desc.a.leading = 64;
    desc.batch = 3, desc.a.batch_stride = desc.b.batch_stride = 12288, desc.d.batch_stride = 6144;
    desc.c = desc.d;
    Matmul matmul(*library_);
    ASSERT_EQ(make_ready(matmul, desc), "");
    const std::string log = state().log;
    EXPECT_NE(log.find("operation compute=68 scale=0 3=1 4=1 7=1\n"), std::string::npos) << log; // our a is [k, m]
    EXPECT_NE(log.find("b layout type=2 64x128 ld=64 5=3 6=3000 at 1000"), std::string::npos) << log;
    EXPECT_NE(log.find("c layout type=2 96x64 ld=96 5=3 6=1800 at 3000"), std::string::npos) << log;
    EXPECT_NE(log.find("alpha 1.000000 beta 1.000000"), std::string::npos) << log;
}

TEST_F(cublaslt_test, factors_are_in_device_memory) {
    MatmulDesc desc = f8_matmul(64, 96, 128);
    desc.d = desc.c = desc.b, desc.c.dtype = desc.d.dtype = SCALIDE_F32, desc.c.leading = desc.d.leading = 96;
    desc.c.scale = desc.d.scale = ScaleMode::none;
    desc.has_addend_factor = true;
    EXPECT_EQ(factors_of(desc), "alpha one beta addend_factor");
    desc.a.dtype = desc.b.dtype = SCALIDE_F16, desc.a.scale = desc.b.scale = ScaleMode::none;
    desc.has_factor = true;
    EXPECT_EQ(factors_of(desc), "alpha factor beta addend_factor");
    desc.has_addend_factor = false;
    EXPECT_EQ(factors_of(desc), "alpha factor beta one");
    desc.c = {};
    EXPECT_EQ(factors_of(desc), "alpha factor beta zero");
    desc.has_factor = false;
    EXPECT_EQ(factors_of(desc), "alpha one beta zero");
}

TEST_F(cublaslt_test, scales_of_rows_and_blocks) {
    MatmulDesc desc = f8_matmul(128, 256, 512);
    desc.a.scale = ScaleMode::vec128, desc.b.scale = ScaleMode::blk128x128;
    Matmul matmul(*library_);
    ASSERT_EQ(make_ready(matmul, desc), "");
    const std::string log = state().log;
    EXPECT_NE(log.find(" 31=5 32=4"), std::string::npos) << log; // cuBLASLt's A is our b
}

} // namespace scalide

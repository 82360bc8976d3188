// What the runtime asks of cuBLASLt, call by call, on a stand-in.
#include "fixture.h"
#include <cstdlib>
#include <fstream>
#include <iterator>

namespace scalide {

/// The descriptors of a layer's FP8 training step, field by field; SCALIDE_UPDATE_GOLDEN=1 writes them anew.
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
            EXPECT_EQ(why.find("cuBLASLt: "), 0u) << "call " << failing << ": " << why;
        }
        EXPECT_EQ(state().live, before) << "call " << failing;
    }
    reset();
    Matmul matmul(*library_);
    EXPECT_EQ(make_ready(matmul, desc), "");
}

TEST_F(cublaslt_test, a_broken_rule_asks_nothing) {
    Matmul matmul(*library_);
    EXPECT_EQ(make_ready(matmul, f8_matmul(64, 96, 100)), "matmul.k: must be a multiple of 16 for f8 operands, got 100. The kernel that "
                                                          "writes the operand pads it with zeros. [extents.k16]");
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

TEST_F(cublaslt_test, scales_of_rows_and_blocks) {
    MatmulDesc desc = f8_matmul(128, 256, 512);
    desc.a.scale = ScaleMode::vec128, desc.b.scale = ScaleMode::blk128x128;
    Matmul matmul(*library_);
    ASSERT_EQ(make_ready(matmul, desc), "");
    const std::string log = state().log;
    EXPECT_NE(log.find(" 31=5 32=4"), std::string::npos) << log; // cuBLASLt's A is our b
}

} // namespace scalide

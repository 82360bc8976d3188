// device.matmul.*: matmuls of a plan as calls of cuBLASLt, with an emulated cuBLASLt and CUDA driver.
#include "bound_products.h"
#include <algorithm>

using namespace scalide::test;

TEST_F(matmul, a_run_calls_the_library_and_nothing_else) {
    const Context context(SCALIDE_CUDA);
    Products products(context.handle, 48);
    ASSERT_EQ(products.bind(), SCALIDE_OK) << scalide_message(context.handle);
    ASSERT_EQ(scalide_step_count(products.binding), 2u);
    for (const size_t step : {0, 1}) {
        EXPECT_STREQ(products.step(step).library, "cublaslt") << products.step(step).reason;
        EXPECT_EQ(products.step(step).reason, nullptr);
    }
    reset();
    ASSERT_EQ(scalide_run(products.binding), SCALIDE_OK);
    EXPECT_EQ(calls(), (std::vector<std::string>{"cuCtxPushCurrent", "cublasLtMatmul", "cublasLtMatmul", "cuCtxPopCurrent"}));
    EXPECT_EQ(read().calls, 2);
    EXPECT_EQ(scalide_describe_step(products.binding, 2, nullptr), SCALIDE_INVALID_ARGUMENT);
}

TEST_F(matmul, arrays_factors_and_scales_are_those_of_the_program) {
    const Context context(SCALIDE_CUDA);
    Products products(context.handle, 48);
    ASSERT_EQ(products.bind(), SCALIDE_OK) << scalide_message(context.handle);
    reset();
    ASSERT_EQ(scalide_run(products.binding), SCALIDE_OK);
    const std::string log = read().log;
    const auto at = [&](size_t index) { return " at " + hex(products.arrays[index].data) + "\n"; };
    // cuBLASLt's A is our rhs, its B our lhs, whose scale (18) is the factor.
    EXPECT_NE(log.find("matmul operation compute=68 scale=0 3=1 4=0 7=1 18=" + hex(products.arrays[2].data) + "\n"), std::string::npos)
        << log;
    EXPECT_NE(log.find("    a layout type=28 64x32 ld=64" + at(1) + "    b layout type=28 64x48 ld=64" + at(0)), std::string::npos) << log;
    EXPECT_NE(log.find("    d layout type=0 32x48 ld=32" + at(5)), std::string::npos) << log;
    EXPECT_NE(log.find("    a layout type=2 32x64 ld=32" + at(4) + "    b layout type=2 64x48 ld=64" + at(3)), std::string::npos) << log;
    EXPECT_NE(log.find("    d layout type=0 32x48 ld=32" + at(6)), std::string::npos) << log;
}

TEST_F(matmul, epilogues_are_those_of_the_program) {
    const Context context(SCALIDE_CUDA);
    Epilogues bound(context.handle, 48);
    *static_cast<float *>(bound.arrays[Epilogues::g].data) = 5, *static_cast<float *>(bound.arrays[Epilogues::h].data) = 7;
    ASSERT_EQ(bound.bind(), SCALIDE_OK) << scalide_message(context.handle);
    ASSERT_EQ(scalide_step_count(bound.binding), 2u);
    reset();
    ASSERT_EQ(scalide_run(bound.binding), SCALIDE_OK);
    EXPECT_EQ(calls(), (std::vector<std::string>{"cuCtxPushCurrent", "cublasLtMatmul", "cublasLtMatmul", "cuCtxPopCurrent"}));
    const std::string log = read().log;
    const auto at = [&](Epilogues::Place place) { return hex(bound.arrays[place].data); };
    using enum Epilogues::Place;
    // Bias (7, 8, of dtype 26), scale of lhs (18), factor of the result (20), largest magnitude (21); C has no memory.
    EXPECT_NE(log.find("matmul operation compute=68 scale=0 3=1 4=0 7=4 8=" + at(c) + " 18=" + at(s) + " 20=" + at(f) + " 21=" + at(amax) +
                       " 26=e\n"),
              std::string::npos)
        << log;
    EXPECT_NE(log.find("    c layout type=14 32x48 ld=32 at 0\n    d layout type=28 32x48 ld=32 at " + at(y) + "\n"), std::string::npos)
        << log;
    EXPECT_NE(log.find("    c layout type=0 32x48 ld=32 at " + at(r) + "\n    d layout type=0 32x48 ld=32 at " + at(z) +
                       "\n    alpha 5.000000 beta 7.000000"),
              std::string::npos)
        << log;
}

TEST_F(matmul, scales_of_rows_and_blocks_are_arrays_of_the_program_or_of_its_kernels) {
    const Context context(SCALIDE_CUDA);
    Blocks bound(context.handle, 48);
    ASSERT_EQ(bound.bind(), SCALIDE_OK) << scalide_message(context.handle);
    reset();
    ASSERT_EQ(scalide_run(bound.binding), SCALIDE_OK);
    const std::string log = read().log;
    const auto at = [&](Blocks::Place place) { return hex(bound.arrays[place].data); };
    using enum Blocks::Place;
    // cuBLASLt's A is our rhs: pointers (17, 18) and modes (31, 32) of its A and B; 3: a scale a row, 4: 128 elements.
    EXPECT_NE(log.find("matmul operation compute=68 scale=0 3=1 4=0 7=4 8=" + at(c) + " 17=" + at(columns) + " 18=" + at(rows) +
                       " 26=e 31=3 32=3\n    a layout type=28 256x32 ld=256 at " + at(w) + "\n    b layout type=28 256x48 ld=256 at " +
                       at(x) + "\n"),
              std::string::npos)
        << log;
    const size_t last = scalide_step_count(bound.binding) - 1;
    const scalide_matmul &plan = *bound.program->steps[last].matmul;
    const auto of_kernel = [&](int32_t buffer) { return hex(bound.binding->memory[buffer]); };
    EXPECT_NE(log.find("matmul operation compute=68 scale=0 3=1 4=0 7=1 17=" + of_kernel(plan.rhs_scales) +
                       " 18=" + of_kernel(plan.lhs_scales) + " 31=4 32=4\n"),
              std::string::npos)
        << log;
    EXPECT_NE(of_kernel(plan.lhs_scales), at(xs)) << "stored anew, row beside row";
    EXPECT_EQ(calls().back(), "cuCtxPopCurrent");
    EXPECT_EQ(calls()[calls().size() - 2], "cublasLtMatmul") << "after the kernels that store its scales";
}

TEST_F(matmul, operands_are_rounded_where_the_policy_says_so) {
    const Context context(SCALIDE_CUDA);
    Bound bound(context.handle, tf32_cuda_program(), {{SCALIDE_F32, {48, 64}}, {SCALIDE_F32, {64, 32}}, {SCALIDE_F32, {48, 32}}});
    ASSERT_EQ(bound.bind(), SCALIDE_OK) << scalide_message(context.handle);
    reset();
    ASSERT_EQ(scalide_run(bound.binding), SCALIDE_OK);
    EXPECT_NE(std::string(read().log).find("matmul operation compute=77 "), std::string::npos) << read().log;
}

TEST_F(matmul, an_epilogue_that_the_library_cannot_do_is_the_kernels_too) {
    const Context context(SCALIDE_CUDA);
    Epilogues bound(context.handle, 7);
    ASSERT_EQ(bound.bind(), SCALIDE_OK) << scalide_message(context.handle);
    EXPECT_STREQ(bound.step(1).library, "cublaslt");
    EXPECT_NE(std::string(bound.step(0).reason).find("[extents.m16]"), std::string::npos);
}

TEST_F(matmul, what_f8_operands_cannot_do_wider_ones_do) {
    const Context context(SCALIDE_CUDA);
    Products products(context.handle, 7);
    ASSERT_EQ(products.bind(), SCALIDE_OK) << scalide_message(context.handle);
    EXPECT_STREQ(products.step(0).library, "cublaslt");
    EXPECT_STREQ(products.step(0).reason, "matmul.m: must be a multiple of 16 for f8 operands, got 7. Fixed extents are padded with zeros; "
                                          "declare a symbol with step 16. [extents.m16]");
    EXPECT_STREQ(products.step(1).library, "cublaslt");
    reset();
    ASSERT_EQ(scalide_run(products.binding), SCALIDE_OK);
    EXPECT_EQ(calls(), (std::vector<std::string>{"cuCtxPushCurrent", "cuLaunchKernel", "cuLaunchKernel", "cublasLtMatmul", "cublasLtMatmul",
                                                 "cuCtxPopCurrent"}));
}

TEST_F(matmul, other_arrays_are_taken_and_algorithms_sought_where_they_are_aligned_to_less) {
    const Context context(SCALIDE_CUDA);
    Products products(context.handle, 48);
    ASSERT_EQ(products.bind(), SCALIDE_OK) << scalide_message(context.handle);
    ASSERT_EQ(products.move(0, 256), SCALIDE_OK);
    reset();
    ASSERT_EQ(scalide_run(products.binding), SCALIDE_OK);
    EXPECT_NE(std::string(read().log).find("b layout type=28 64x48 ld=64 at " + hex(products.arrays[0].data)), std::string::npos);
    ASSERT_EQ(products.move(0, 16), SCALIDE_OK);
    EXPECT_EQ(read().searches, 1) << "an algorithm for pointers of 16 bytes";
    reset();
    ASSERT_EQ(scalide_run(products.binding), SCALIDE_OK);
    EXPECT_EQ(calls(), (std::vector<std::string>{"cuCtxPushCurrent", "cublasLtMatmul", "cublasLtMatmul", "cuCtxPopCurrent"}));
}

TEST_F(matmul, a_captured_run_has_the_calls) {
    const Context context(SCALIDE_CUDA);
    Products products(context.handle, 48);
    ASSERT_EQ(products.bind(), SCALIDE_OK);
    reset();
    ASSERT_EQ(scalide_capture(products.binding), SCALIDE_OK) << scalide_message(context.handle);
    EXPECT_EQ(calls(), (std::vector<std::string>{"cuCtxPushCurrent", "cuStreamBeginCapture", "cuCtxPushCurrent", "cublasLtMatmul",
                                                 "cublasLtMatmul", "cuCtxPopCurrent", "cuStreamEndCapture", "cuGraphInstantiate",
                                                 "cuGraphDestroy", "cuCtxPopCurrent"}));
    reset();
    ASSERT_EQ(scalide_run(products.binding), SCALIDE_OK);
    EXPECT_EQ(read().calls, 0);
}

TEST_F(matmul, a_library_that_fails_at_bind_leaves_the_product_to_the_kernel) {
    int failing = 0;
    for (bool failed = true; failed; ++failing) {
        const Context context(SCALIDE_CUDA);
        Products products(context.handle, 48);
        reset(failing);
        ASSERT_EQ(products.bind(), SCALIDE_OK) << failing << ' ' << scalide_message(context.handle);
        failed = read().calls > failing;
        const char *first = products.step(0).reason, *second = products.step(1).reason;
        const bool is_search = !first && !second; // the heuristic's first algorithm failed: the second was taken
        const std::string reason = first ? first : second ? second : "";
        EXPECT_TRUE(!failed || is_search || reason.starts_with("cublasLt") || reason.starts_with("cuBLASLt")) << failing << ' ' << reason;
        reset();
        EXPECT_EQ(scalide_run(products.binding), SCALIDE_OK) << failing;
        const bool is_widened = first && products.step(0).library; // two kernels convert the operands
        EXPECT_EQ(calls().size(), is_widened ? 6u : 4u) << failing;
    }
    EXPECT_GT(failing, 30);
    EXPECT_EQ(read().live, 0);
    EXPECT_EQ(driver.live(), 0u);
}

TEST_F(matmul, a_call_that_fails_in_a_run_is_a_status_with_words) {
    const Context context(SCALIDE_CUDA);
    Products products(context.handle, 48);
    ASSERT_EQ(products.bind(), SCALIDE_OK);
    reset(1);
    EXPECT_EQ(scalide_run(products.binding), SCALIDE_DEVICE_FAILED);
    EXPECT_STREQ(scalide_message(context.handle),
                 "products_cuda.contract_2: cublasLtMatmul failed: CUBLAS_STATUS_EXECUTION_FAILED. Create the context again.");
    EXPECT_EQ(scalide_run(products.binding), SCALIDE_DEVICE_FAILED) << "sticky";
}

/// Runs twice: with the emulated cuBLASLt and without cuBLASLt.
TEST_F(matmul, who_computes_depends_on_the_library) {
    const bool is_there = file_of_cublaslt()[0] == '/';
    const Context context(SCALIDE_CUDA);
    Products products(context.handle, 48);
    ASSERT_EQ(products.bind(), SCALIDE_OK) << scalide_message(context.handle);
    const std::string reason = products.step(0).reason ? products.step(0).reason : "";
    EXPECT_EQ(reason.find("cannot load cuBLASLt (none/libcublasLt.so): ") == 0, !is_there) << reason;
    driver.reset(-1, 0);
    ASSERT_EQ(scalide_run(products.binding), SCALIDE_OK);
    const std::string call = is_there ? "cublasLtMatmul" : "cuLaunchKernel";
    EXPECT_EQ(calls(), (std::vector<std::string>{"cuCtxPushCurrent", call, call, "cuCtxPopCurrent"}));
}

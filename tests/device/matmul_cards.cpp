// device.matmul.*: matmuls that depend on the compute capability or that update an array in place.
#include "bound_products.h"
#include <algorithm>
#include <span>

using namespace scalide::test;

namespace {

/// Steps of the binding that have scales of rows or blocks, and a library.
size_t scaled_calls(const Bound &bound) {
    size_t count = 0;
    for (int32_t step = 0; step < bound.binding->program->step_count; ++step) {
        const scalide_matmul *matmul = bound.binding->program->steps[step].matmul;
        count += matmul && matmul->lhs_scales >= 0 && bound.step(static_cast<size_t>(step)).library;
    }
    return count;
}

} // namespace

TEST_F(matmul, tiles_of_scales_are_those_of_a_kernel) {
    driver.capability(100);
    const Context context(SCALIDE_CUDA);
    Mxfp8 bound(context.handle);
    ASSERT_EQ(bound.bind(), SCALIDE_OK) << scalide_message(context.handle);
    ASSERT_EQ(scalide_step_count(bound.binding), 2u);
    EXPECT_STREQ(bound.step(1).library, "cublaslt") << bound.step(1).reason;
    reset();
    ASSERT_EQ(scalide_run(bound.binding), SCALIDE_OK);
    const scalide_matmul &plan = *bound.program->steps[1].matmul;
    const auto of_kernel = [&](int32_t buffer) { return hex(bound.binding->memory[buffer]); };
    EXPECT_NE(std::string(read().log)
                  .find("matmul operation compute=68 scale=0 3=1 4=0 7=1 17=" + of_kernel(plan.rhs_scales) +
                        " 18=" + of_kernel(plan.lhs_scales) + " 31=2 32=2\n"),
              std::string::npos)
        << read().log;
    // One tile of 128 rows x 4 scales holds the 32 rows of the right operand, too.
    const scalide_buffer &tiles = bound.program->buffers[plan.rhs_scales];
    EXPECT_EQ(tiles.dtype, SCALIDE_F8_E8M0FNU);
    int64_t elements = 1;
    for (int32_t axis = 0; axis < tiles.rank; ++axis) elements *= tiles.shape[axis].terms[0].coefficient;
    EXPECT_EQ(elements, 128 * 4);
}

TEST_F(matmul, scales_that_a_card_does_not_know_are_the_kernels) {
    const Context older(SCALIDE_CUDA);
    driver.capability(100);
    const Context newer(SCALIDE_CUDA);
    Blocks blocks(newer.handle, 48);
    Mxfp8 mx(older.handle);
    ASSERT_EQ(blocks.bind(), SCALIDE_OK) << scalide_message(newer.handle);
    ASSERT_EQ(mx.bind(), SCALIDE_OK) << scalide_message(older.handle);
    const std::string need = "matmul.a.scale: scales of rows and blocks of 128 need sm_90 and cuBLAS 12.9, vec32_ue8m0 needs sm_100 and "
                             "cuBLAS 12.8, got ";
    const size_t last = scalide_step_count(blocks.binding) - 1;
    EXPECT_EQ(std::string(blocks.step(last).reason).find(need + "vec128 x vec128 on sm_100 with cuBLAS 130100."), 0u)
        << blocks.step(last).reason;
    EXPECT_EQ(std::string(mx.step(1).reason).find(need + "vec32_ue8m0 x vec32_ue8m0 on sm_90 with cuBLAS 130100."), 0u)
        << mx.step(1).reason;
    reset();
    ASSERT_EQ(scalide_run(blocks.binding), SCALIDE_OK);
    ASSERT_EQ(scalide_run(mx.binding), SCALIDE_OK);
    EXPECT_EQ(read().calls, 0) << "kernels alone";
}

TEST_F(matmul, a_program_for_all_cards_calls_what_each_knows) {
    const std::pair<int32_t, std::pair<size_t, size_t>> expected[] = {
        {80, {0, 0}}, {90, {2, 0}}, {100, {0, 1}}, {120, {0, 1}}, {130, {0, 0}}};
    for (const auto &[capability, calls] : expected) {
        driver.capability(capability);
        const Context context(SCALIDE_CUDA);
        Blocks blocks(context.handle, 48, blocks_all_program());
        Mxfp8 mx(context.handle, mxfp8_all_program());
        ASSERT_EQ(blocks.bind(), SCALIDE_OK) << scalide_message(context.handle);
        ASSERT_EQ(mx.bind(), SCALIDE_OK) << scalide_message(context.handle);
        EXPECT_EQ(scaled_calls(blocks), calls.first) << "sm_" << capability;
        EXPECT_EQ(scaled_calls(mx), calls.second) << "sm_" << capability;
        scalide_step_info info;
        const size_t steps = scalide_step_count(blocks.binding);
        EXPECT_EQ(scalide_describe_step(blocks.binding, steps, &info), SCALIDE_INVALID_ARGUMENT);
        EXPECT_EQ(blocks.move(Blocks::z, 64), SCALIDE_OK) << scalide_message(context.handle);
        EXPECT_EQ(scalide_run(blocks.binding), SCALIDE_OK) << scalide_message(context.handle);
    }
    EXPECT_EQ(scalide_step_count(nullptr), 0u);
}

/// Codes of -1, 0, 1 and 2, scales that are powers of two: sums are exact in any order.
TEST_F(matmul, scaled_products_are_equal_by_the_library_and_by_the_kernels) {
    const Computing computing;
    constexpr int64_t b = 48, n = 32, k = 256;
    const auto results = [&](int32_t capability, const scalide_program *built) {
        driver.capability(capability);
        const Context context(SCALIDE_CUDA);
        Blocks bound(context.handle, b, built);
        const auto bytes = [&](Blocks::Place place) { return static_cast<uint8_t *>(bound.arrays[place].data); };
        constexpr uint8_t codes[] = {0xb8, 0, 0x38, 0x40};
        for (int64_t i = 0; i < b * k; ++i) bytes(Blocks::x)[i] = codes[(i * 7 + i / 5) % 4];
        for (int64_t i = 0; i < n * k; ++i) bytes(Blocks::w)[i] = codes[(i * 3 + i / 11) % 4];
        for (int64_t i = 0; i < n; ++i) reinterpret_cast<uint16_t *>(bytes(Blocks::c))[i] = 0x3f80;
        const std::pair<Blocks::Place, int64_t> scales[] = {
            {Blocks::rows, b}, {Blocks::columns, n}, {Blocks::xs, 2 * b}, {Blocks::ws, 2 * n}};
        for (const auto &[place, count] : scales)
            for (int64_t i = 0; i < count; ++i) reinterpret_cast<float *>(bytes(place))[i] = static_cast<float>(1 << (i * 5 % 3));
        EXPECT_EQ(bound.bind(), SCALIDE_OK) << scalide_message(context.handle);
        EXPECT_EQ(scaled_calls(bound), capability == 90 ? 2u : 0u);
        EXPECT_EQ(scalide_run(bound.binding), SCALIDE_OK) << scalide_message(context.handle);
        EXPECT_EQ(scalide_synchronise(context.handle), SCALIDE_OK);
        std::vector<uint8_t> all(bytes(Blocks::y), bytes(Blocks::y) + 2 * b * n);
        std::copy_n(bytes(Blocks::z), 4 * b * n, std::back_inserter(all)); // insert is a false warning of g++ 12
        return all;
    };
    const std::vector<uint8_t> of_library = results(90, blocks_cuda_program());
    EXPECT_EQ(of_library, results(100, blocks_cuda_program())) << "kernels that stand for calls";
    EXPECT_EQ(of_library, results(90, blocks_all_program()));
    EXPECT_EQ(of_library, results(80, blocks_all_program())) << "other products";
    EXPECT_GT(std::ranges::count_if(of_library, [](uint8_t byte) { return byte != 0; }), b * n);
}

/// The trials of a bind write elsewhere: an argument is read and written by runs alone.
TEST_F(matmul, a_product_is_added_to_an_argument_in_its_place) {
    const Computing computing;
    const Context context(SCALIDE_CUDA);
    constexpr int64_t b = 48;
    Accumulation bound(context.handle, b);
    using enum Accumulation::Place;
    std::fill_n(static_cast<uint16_t *>(bound.arrays[u].data), b * 64, uint16_t(0x3c00));  // 1
    std::fill_n(static_cast<uint16_t *>(bound.arrays[v].data), 64 * 32, uint16_t(0x4000)); // 2
    std::fill_n(bound.floats(w), b * 32, 1000.0f);
    std::fill_n(static_cast<uint8_t *>(bound.arrays[x].data), b * 64, uint8_t(0x38)); // 1
    *bound.floats(s) = 3, *bound.floats(f) = 0.25f, *bound.floats(top) = 7;
    ASSERT_EQ(bound.bind(), SCALIDE_OK) << scalide_message(context.handle);
    EXPECT_EQ(*std::ranges::min_element(bound.floats(w), bound.floats(w) + b * 32), 1000.0f) << "bound";
    EXPECT_EQ(*bound.floats(top), 7.0f) << "bound";
    for (size_t step = 0; step < scalide_step_count(bound.binding); ++step)
        EXPECT_STREQ(bound.step(step).library, "cublaslt") << bound.step(step).reason;
    for (int run = 1; run <= 2; ++run) {
        ASSERT_EQ(scalide_run(bound.binding), SCALIDE_OK) << scalide_message(context.handle);
        ASSERT_EQ(scalide_synchronise(context.handle), SCALIDE_OK);
        const auto [least, most] = std::ranges::minmax_element(bound.floats(w), bound.floats(w) + b * 32);
        EXPECT_EQ(*least, 1000.0f + static_cast<float>(run) * 128);
        EXPECT_EQ(*most, *least);
        EXPECT_EQ(*bound.floats(top), 192.0f);
    }
    EXPECT_EQ(static_cast<uint8_t *>(bound.arrays[y].data)[b * b - 1], 0x64) << "48 in e4m3";
    reset();
    const float before = bound.floats(w)[16];
    EXPECT_EQ(bound.move(w, 64), SCALIDE_OK) << scalide_message(context.handle);
    EXPECT_EQ(read().searches, 1) << "an algorithm for pointers of 64 bytes";
    EXPECT_EQ(*bound.floats(w), before);
}

TEST_F(matmul, where_memory_for_trials_is_not_to_be_had_what_overwrites_is_a_kernel) {
    const Context context(SCALIDE_CUDA);
    constexpr int32_t out_of_memory = 2;
    const auto bind = [&](int64_t failing, size_t *kernels) {
        Accumulation bound(context.handle, 48);
        *bound.floats(Accumulation::w) = 1000;
        driver.reset(failing, out_of_memory);
        const scalide_status status = bound.bind();
        const std::vector<std::string> all = calls();
        driver.reset(-1, 0);
        EXPECT_EQ(*bound.floats(Accumulation::w), 1000.0f) << "call " << failing;
        for (size_t step = 0; status == SCALIDE_OK && step < scalide_step_count(bound.binding); ++step) {
            const char *reason = bound.step(step).reason;
            if (!reason) continue;
            EXPECT_EQ(std::string(reason).find("cuMemAlloc failed: "), 0u) << reason;
            ++*kernels;
        }
        return all;
    };
    size_t kernels = 0;
    bind(-1, &kernels); // loads modules
    const std::vector<std::string> all = bind(-1, &kernels);
    EXPECT_EQ(kernels, 0u);
    for (size_t call = 0; call < all.size(); ++call)
        if (all[call] == "cuMemAlloc") bind(static_cast<int64_t>(call), &kernels);
    EXPECT_EQ(kernels, 2u) << "each product, where its own memory is refused";
}

/// Operands in a dtype that a GPU does not multiply are converted first: all of f8 on sm_80, and f8 with a wider operand on every GPU.
TEST_F(matmul, operands_are_widened_where_no_card_multiplies_them) {
    const Computing computing;
    constexpr int64_t b = 48;
    const auto results = [&](int32_t capability) {
        driver.capability(capability);
        const Context context(SCALIDE_CUDA);
        Widened bound(context.handle, b);
        const auto bytes = [&](Widened::Place place) { return static_cast<uint8_t *>(bound.arrays[place].data); };
        for (int64_t i = 0; i < b * 64; ++i) {
            bytes(Widened::x)[i] = static_cast<uint8_t>(0x30 + i % 9); // 0.5 to 1
            reinterpret_cast<uint16_t *>(bytes(Widened::u))[i] = static_cast<uint16_t>(0x3f80 + 16 * (i % 3));
        }
        for (int64_t i = 0; i < 32 * 64; ++i) bytes(Widened::w)[i] = static_cast<uint8_t>(0xb8 + i % 5); // -1 to -1.5
        for (int64_t i = 0; i < 64 * 48; ++i) bytes(Widened::v)[i] = static_cast<uint8_t>(0x38 + i % 7); // 0.5 to 2.5
        *reinterpret_cast<float *>(bytes(Widened::s)) = 0.5f;
        EXPECT_EQ(bound.bind(), SCALIDE_OK) << scalide_message(context.handle);
        std::string libraries;
        for (size_t step = 0; step < scalide_step_count(bound.binding); ++step)
            libraries += bound.step(step).library ? "library " : bound.step(step).reason ? bound.step(step).reason : "kernel ";
        EXPECT_EQ(libraries, capability == 80 ? "kernel library library " : "library kernel library ");
        EXPECT_EQ(scalide_run(bound.binding), SCALIDE_OK) << scalide_message(context.handle);
        EXPECT_EQ(scalide_synchronise(context.handle), SCALIDE_OK);
        std::vector<uint8_t> all(bytes(Widened::y), bytes(Widened::y) + 4 * b * 32);
        std::copy_n(bytes(Widened::z), 2 * b * 48, std::back_inserter(all));
        return all;
    };
    const std::vector<uint8_t> with_f8 = results(90);
    EXPECT_EQ(with_f8, results(80)) << "sums are exact";
    EXPECT_EQ(std::ranges::count(std::span(with_f8).first(4 * b * 32), 0xc1) +
                  std::ranges::count(std::span(with_f8).first(4 * b * 32), 0xc2),
              b * 32);
}

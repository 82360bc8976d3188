// device.matmul_forms.*: what computes a matmul that cuBLASLt refuses as f8, and what the user gets to know about it.
#include "bound_products.h"
#include <algorithm>
#include <cstring>

using namespace scalide::test;

namespace {

/// A context that keeps what its log gets.
struct Logged {
    std::vector<std::string> lines;
    scalide_context *handle = nullptr;

    explicit Logged(bool requires_libraries = false) {
        scalide_options options = {};
        options.struct_size = sizeof(options);
        options.device = SCALIDE_CUDA;
        options.log = [](void *user, const char *message) { static_cast<std::vector<std::string> *>(user)->emplace_back(message); };
        options.log_user = &lines;
        options.require_libraries = requires_libraries;
        EXPECT_EQ(scalide_context_create(&options, &handle), SCALIDE_OK);
    }
    Logged(const Logged &) = delete;
    Logged &operator=(const Logged &) = delete;
    ~Logged() { scalide_context_destroy(handle); }

    std::string line_with(const std::string &words) const {
        const auto found = std::ranges::find_if(lines, [&](const std::string &line) { return line.find(words) != std::string::npos; });
        return found == lines.end() ? "" : *found;
    }
};

class matmul_forms : public matmul {
protected:
    /// Moves a scalar of the caller to an address that is no multiple of 16.
    static void misalign(Bound &bound, size_t index, float value) {
        bound.arrays[index].data = static_cast<char *>(bound.arrays[index].data) + 4;
        *static_cast<float *>(bound.arrays[index].data) = value;
    }

    static uint8_t *bytes(const Bound &bound, size_t index) { return static_cast<uint8_t *>(bound.arrays[index].data); }

    /// Codes of -1, 0, 1 and 2: sums are exact in any order.
    static void fill_codes(const Bound &bound, size_t index, int64_t count, int64_t step) {
        constexpr uint8_t codes[] = {0xb8, 0, 0x38, 0x40};
        for (int64_t i = 0; i < count; ++i) bytes(bound, index)[i] = codes[(i * step + i / 5) % 4];
    }

    static void run(const Bound &bound) {
        ASSERT_EQ(scalide_run(bound.binding), SCALIDE_OK) << scalide_message(bound.context);
        ASSERT_EQ(scalide_synchronise(bound.context), SCALIDE_OK);
    }
};

const std::string widened_words =
    "products_cuda: cuBLASLt refuses the matmul of y (products.scl:6): matmul.a.scale_alignment: scales must begin at multiples of 16 "
    "bytes, got a 4, b 256. Use scalide_allocate. [alignment.scales] It multiplies bf16 operands instead, which is slower.";

} // namespace

/// An f8 matmul multiplies by its scale, so a scale in an odd slot of 8 bytes was refused by an H100.
TEST_F(matmul_forms, every_slot_of_the_scalar_table_is_aligned) {
    const Context context(SCALIDE_CUDA);
    Products products(context.handle, 48);
    ASSERT_EQ(products.bind(), SCALIDE_OK) << scalide_message(context.handle);
    EXPECT_EQ(sizeof(scalide::ScalarSlot), 16u);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(products.binding->scalars) % 16, 0u);
}

TEST_F(matmul_forms, a_refused_f8_matmul_multiplies_bf16_operands) {
    const Computing computing;
    constexpr int64_t b = 48;
    std::vector<uint8_t> asked;
    for (const bool is_misaligned : {false, true}) {
        Logged context;
        Products bound(context.handle, b);
        fill_codes(bound, 0, b * 64, 7);
        fill_codes(bound, 1, 32 * 64, 3);
        *static_cast<float *>(bound.arrays[2].data) = 0.5f;
        if (is_misaligned) misalign(bound, 2, 0.5f);
        ASSERT_EQ(bound.bind(), SCALIDE_OK) << scalide_message(context.handle);
        EXPECT_STREQ(bound.step(0).library, "cublaslt");
        EXPECT_EQ(bound.step(0).reason != nullptr, is_misaligned);
        EXPECT_EQ(context.line_with("refuses"), is_misaligned ? widened_words : "");
        if (is_misaligned) EXPECT_EQ(bound.step(0).notice, widened_words);
        reset();
        run(bound);
        const std::vector<std::string> all = calls();
        EXPECT_EQ(std::ranges::count(all, "cuLaunchKernel"), is_misaligned ? 2 : 0) << "one for each operand";
        EXPECT_EQ(std::ranges::count(all, "cublasLtMatmul"), 2);
        const std::vector<uint8_t> result(bytes(bound, 5), bytes(bound, 5) + 4 * b * 32);
        if (is_misaligned)
            EXPECT_EQ(result, asked);
        else
            asked = result;
    }
    EXPECT_GT(std::ranges::count_if(asked, [](uint8_t byte) { return byte != 0; }), b * 32);
}

TEST_F(matmul_forms, a_refused_f8_result_is_converted_from_f32) {
    const Computing computing;
    constexpr int64_t b = 48;
    std::vector<uint8_t> asked;
    for (const bool is_misaligned : {false, true}) {
        Logged context;
        Epilogues bound(context.handle, b);
        using enum Epilogues::Place;
        fill_codes(bound, x, b * 64, 7);
        fill_codes(bound, w, 32 * 64, 3);
        for (int64_t i = 0; i < 32; ++i) reinterpret_cast<uint16_t *>(bytes(bound, c))[i] = i % 2 ? 0x3f80 : 0xc040; // 1, -3
        *static_cast<float *>(bound.arrays[s].data) = 0.5f;
        *static_cast<float *>(bound.arrays[f].data) = 16;
        *static_cast<float *>(bound.arrays[amax].data) = 1e9f;
        if (is_misaligned) misalign(bound, s, 0.5f);
        ASSERT_EQ(bound.bind(), SCALIDE_OK) << scalide_message(context.handle);
        EXPECT_STREQ(bound.step(0).library, "cublaslt");
        EXPECT_EQ(context.line_with("It multiplies bf16 operands to f32 instead, which a kernel converts.").empty(), !is_misaligned);
        for (int repeat = 0; repeat < 2; ++repeat) run(bound);
        std::vector<uint8_t> result(bytes(bound, y), bytes(bound, y) + b * 32);
        result.insert(result.end(), bytes(bound, amax), bytes(bound, amax) + 4);
        if (is_misaligned)
            EXPECT_EQ(result, asked);
        else
            asked = result;
    }
    EXPECT_GT(std::ranges::count(asked, 0x7e), 0) << "some are saturated";
}

TEST_F(matmul_forms, extents_that_f8_operands_may_not_have_are_no_reason_for_a_kernel) {
    const Computing computing;
    std::vector<uint8_t> rows;
    for (const int64_t b : {48, 7}) {
        const Context context(SCALIDE_CUDA);
        Products bound(context.handle, b);
        fill_codes(bound, 0, b * 64, 7);
        fill_codes(bound, 1, 32 * 64, 3);
        *static_cast<float *>(bound.arrays[2].data) = 0.25f;
        ASSERT_EQ(bound.bind(), SCALIDE_OK) << scalide_message(context.handle);
        EXPECT_STREQ(bound.step(0).library, "cublaslt");
        run(bound);
        const std::vector<uint8_t> result(bytes(bound, 5), bytes(bound, 5) + 4 * 7 * 32);
        if (rows.empty()) rows = result;
        EXPECT_EQ(result, rows) << b;
    }
}

TEST_F(matmul_forms, an_empty_matmul_is_no_refusal) {
    const Logged context(true);
    Products bound(context.handle, 0);
    EXPECT_EQ(bound.bind(), SCALIDE_OK) << scalide_message(context.handle);
    EXPECT_EQ(bound.step(0).notice, nullptr);
    EXPECT_EQ(context.line_with("refuses"), "");
}

TEST_F(matmul_forms, other_arrays_may_change_the_form_and_the_log_says_so) {
    const Computing computing;
    Logged context;
    Products bound(context.handle, 48);
    fill_codes(bound, 0, 48 * 64, 7);
    fill_codes(bound, 1, 32 * 64, 3);
    *static_cast<float *>(bound.arrays[2].data) = 0.5f;
    ASSERT_EQ(bound.bind(), SCALIDE_OK) << scalide_message(context.handle);
    run(bound);
    const std::vector<uint8_t> asked(bytes(bound, 5), bytes(bound, 5) + 4 * 48 * 32);
    EXPECT_EQ(context.line_with("refuses"), "");
    static_cast<float *>(bound.arrays[2].data)[1] = 0.5f;
    ASSERT_EQ(bound.move(2, 4), SCALIDE_OK) << scalide_message(context.handle);
    EXPECT_EQ(context.line_with("refuses"), widened_words);
    std::memset(bound.arrays[5].data, 0, 4 * 48 * 32);
    run(bound);
    EXPECT_EQ(std::vector<uint8_t>(bytes(bound, 5), bytes(bound, 5) + 4 * 48 * 32), asked);
    ASSERT_EQ(scalide_capture(bound.binding), SCALIDE_OK) << scalide_message(context.handle);
    std::memset(bound.arrays[5].data, 0, 4 * 48 * 32);
    run(bound);
    EXPECT_EQ(std::vector<uint8_t>(bytes(bound, 5), bytes(bound, 5) + 4 * 48 * 32), asked);
    EXPECT_EQ(std::ranges::count(context.lines, widened_words), 1) << "told once";
}

/// Arrays of a lower alignment need another algorithm, and here none runs.
TEST_F(matmul_forms, a_widened_matmul_that_is_refused_later_is_the_kernels) {
    const Computing computing;
    Logged context;
    Products bound(context.handle, 48);
    fill_codes(bound, 0, 48 * 64, 7);
    fill_codes(bound, 1, 32 * 64, 3);
    misalign(bound, 2, 0.5f);
    ASSERT_EQ(bound.bind(), SCALIDE_OK) << scalide_message(context.handle);
    run(bound);
    const std::vector<uint8_t> widened(bytes(bound, 5), bytes(bound, 5) + 4 * 48 * 32);
    reset_library(-1, 2, 2);
    ASSERT_EQ(bound.move(5, 16), SCALIDE_OK) << scalide_message(context.handle);
    EXPECT_EQ(bound.step(0).library, nullptr);
    EXPECT_NE(context.line_with("The generated kernel contract_1 computes it instead"), "");
    reset();
    run(bound);
    EXPECT_EQ(std::vector<uint8_t>(bytes(bound, 5), bytes(bound, 5) + 4 * 48 * 32), widened) << "sums are exact";
    EXPECT_EQ(std::ranges::count(calls(), "cublasLtMatmul"), 1) << "of the other step";
}

/// cuBLASLt fails to run every algorithm that it offers, as on the H100.
TEST_F(matmul_forms, a_kernel_is_the_last_choice) {
    Logged context;
    Products bound(context.handle, 48);
    reset_library(-1, 8, 8);
    ASSERT_EQ(bound.bind(), SCALIDE_OK) << scalide_message(context.handle);
    EXPECT_EQ(bound.step(0).library, nullptr);
    EXPECT_EQ(context.line_with("matmul of y"),
              "products_cuda: cuBLASLt refuses the matmul of y (products.scl:6): cuBLASLt offers 8 algorithms for this matmul, but none of "
              "them runs. The generated kernel contract_1 computes it instead, which is slower.");
    EXPECT_NE(context.line_with("matmul of z"), "");
}

TEST_F(matmul_forms, required_libraries_make_a_refusal_an_error) {
    const Logged context(true);
    Products good(context.handle, 48);
    EXPECT_EQ(good.bind(), SCALIDE_OK) << scalide_message(context.handle);
    Products bound(context.handle, 48);
    misalign(bound, 2, 1);
    EXPECT_EQ(bound.bind(), SCALIDE_UNSUPPORTED);
    EXPECT_EQ(bound.binding, nullptr);
    EXPECT_STREQ(scalide_message(context.handle),
                 "products_cuda: cuBLASLt refuses the matmul of y (products.scl:6): matmul.a.scale_alignment: scales must begin at "
                 "multiples of 16 bytes, got a 4, b 256. Use scalide_allocate. [alignment.scales] The context requires libraries. "
                 "Change the matmul, or require no libraries.");
}

TEST_F(matmul_forms, without_memory_for_operands_a_kernel_computes) {
    const Context context(SCALIDE_CUDA);
    constexpr int32_t out_of_memory = 2;
    int kernels = 0;
    std::string reasons;
    for (int64_t failing = 0;; ++failing) {
        Products bound(context.handle, 48);
        misalign(bound, 2, 1);
        driver.reset(failing, out_of_memory);
        const scalide_status status = bound.bind();
        const bool was_reached = static_cast<int64_t>(driver.calls().size()) > failing;
        driver.reset(-1, 0);
        if (status == SCALIDE_OK && was_reached && !bound.step(0).library) {
            ++kernels;
            reasons += bound.step(0).reason;
        }
        if (!was_reached) break;
    }
    EXPECT_EQ(kernels, 2) << "the calls that allocate the operands, and the numbers 0 and 1";
    EXPECT_NE(reasons.find(" There is no memory for 16-bit operands."), std::string::npos) << reasons;
}

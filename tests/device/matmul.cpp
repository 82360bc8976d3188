// device.matmul.*: products of a plan as calls of cuBLASLt, on stand-ins for it and for CUDA's driver.
#include "../cublaslt/standin.h"
#include "accumulation_cuda.h"
#include "binding.h"
#include "blocks_cuda.h"
#include "elementwise.h"
#include "epilogues_cuda.h"
#include "mxfp8_cuda.h"
#include "products_cuda.h"
#include "scalide/plan.h"
#include "standin_driver.h"
#include "tf32_cuda.h"
#include <algorithm>
#include <cstdlib>
#include <dlfcn.h>
#include <stdexcept>

using namespace scalide::test;

namespace {

template<typename Function>
Function find(const char *library, const char *name) {
    void *found = dlsym(dlopen(library, RTLD_NOW), name);
    if (!found) throw std::runtime_error(name);
    return reinterpret_cast<Function>(found);
}

std::string file_of_cublaslt() {
    const char *file = std::getenv("SCALIDE_CUBLASLT");
    return file ? file : "";
}

using Types = std::vector<std::pair<int32_t, std::vector<int64_t>>>;

/// A program of products, its arrays in the memory of a context.
struct Bound {
    scalide_context *context;
    const scalide_program *program;
    std::vector<void *> taken;
    std::vector<scalide_array> arrays;
    scalide_binding *binding = nullptr;

    Bound(scalide_context *owner, const scalide_program *bound, const Types &types) : context(owner), program(bound) {
        for (const auto &[dtype, shape] : types) {
            void *memory = nullptr;
            EXPECT_EQ(scalide_allocate(context, 4 * 64 * 64 + 4096, &memory), SCALIDE_OK) << scalide_message(context);
            taken.push_back(memory);
            arrays.push_back(scalide_dense_array(memory, nullptr, dtype, static_cast<int32_t>(shape.size()), shape.data()));
        }
    }
    Bound(const Bound &) = delete;
    Bound &operator=(const Bound &) = delete;
    ~Bound() {
        scalide_binding_destroy(binding);
        for (void *memory : taken) scalide_release(context, memory);
    }

    scalide_status bind() { return scalide_bind(context, program, arrays.data(), arrays.size(), &binding); }
    scalide_step_info step(size_t index) const {
        scalide_step_info info = {};
        EXPECT_EQ(scalide_describe_step(binding, index, &info), SCALIDE_OK);
        return info;
    }
    /// Moves argument `index` by so many bytes.
    scalide_status move(size_t index, size_t bytes) {
        arrays[index].data = static_cast<char *>(arrays[index].data) + bytes;
        return scalide_set_argument(binding, index, &arrays[index]);
    }
};

/// products.scl with a batch of `b`.
struct Products : Bound {
    Products(scalide_context *owner, int64_t b)
        : Bound(owner, products_cuda_program(),
                {{SCALIDE_F8_E4M3FN, {b, 64}},
                 {SCALIDE_F8_E4M3FN, {32, 64}},
                 {SCALIDE_F32, {}},
                 {SCALIDE_F16, {b, 64}},
                 {SCALIDE_F16, {64, 32}},
                 {SCALIDE_F32, {b, 32}},
                 {SCALIDE_F32, {b, 32}}}) {}
};

/// epilogues.scl with a batch of `b`.
struct Epilogues : Bound {
    enum Place { x, w, s, c, f, u, v, g, r, h, y, amax, z };
    Epilogues(scalide_context *owner, int64_t b)
        : Bound(owner, epilogues_cuda_program(),
                {{SCALIDE_F8_E4M3FN, {b, 64}},
                 {SCALIDE_F8_E4M3FN, {32, 64}},
                 {SCALIDE_F32, {}},
                 {SCALIDE_BF16, {32}},
                 {SCALIDE_F32, {}},
                 {SCALIDE_F16, {b, 64}},
                 {SCALIDE_F16, {64, 32}},
                 {SCALIDE_F32, {}},
                 {SCALIDE_F32, {b, 32}},
                 {SCALIDE_F32, {}},
                 {SCALIDE_F8_E4M3FN, {b, 32}},
                 {SCALIDE_F32, {}},
                 {SCALIDE_F32, {b, 32}}}) {}
};

/// blocks.scl with a batch of `b`.
struct Blocks : Bound {
    enum Place { x, w, rows, columns, c, xs, ws, y, z };
    Blocks(scalide_context *owner, int64_t b)
        : Bound(owner, blocks_cuda_program(),
                {{SCALIDE_F8_E4M3FN, {b, 256}},
                 {SCALIDE_F8_E4M3FN, {32, 256}},
                 {SCALIDE_F32, {b, 1}},
                 {SCALIDE_F32, {32, 1}},
                 {SCALIDE_BF16, {32}},
                 {SCALIDE_F32, {b, 2}},
                 {SCALIDE_F32, {32, 2}},
                 {SCALIDE_BF16, {b, 32}},
                 {SCALIDE_F32, {b, 32}}}) {}
};

/// accumulation.scl with a batch of `b`.
struct Accumulation : Bound {
    enum Place { u, v, w, x, s, f, top, y };
    Accumulation(scalide_context *owner, int64_t b)
        : Bound(owner, accumulation_cuda_program(),
                {{SCALIDE_F16, {b, 64}},
                 {SCALIDE_F16, {64, 32}},
                 {SCALIDE_F32, {b, 32}},
                 {SCALIDE_F8_E4M3FN, {b, 64}},
                 {SCALIDE_F32, {}},
                 {SCALIDE_F32, {}},
                 {SCALIDE_F32, {}},
                 {SCALIDE_F8_E4M3FN, {b, b}}}) {}
    float *floats(Place place) const { return static_cast<float *>(arrays[place].data); }
};

/// mxfp8.scl.
struct Mxfp8 : Bound {
    explicit Mxfp8(scalide_context *owner)
        : Bound(owner, mxfp8_cuda_program(),
                {{SCALIDE_F8_E4M3FN, {128, 128}},
                 {SCALIDE_F8_E4M3FN, {32, 128}},
                 {SCALIDE_F8_E8M0FNU, {128, 4}},
                 {SCALIDE_F8_E8M0FNU, {32, 4}},
                 {SCALIDE_F32, {128, 32}}}) {}
};

class matmul : public testing::Test {
protected:
    matmul() {
        if (file_of_cublaslt()[0] != '/') return;
        read = find<StandinRead>(file_of_cublaslt().c_str(), "standin_read");
        reset_library = find<StandinReset>(file_of_cublaslt().c_str(), "standin_reset");
        reset();
    }
    void reset(int failing = -1) const {
        driver.reset(-1, 0);
        reset_library(failing, 2, 0);
    }
    ~matmul() override { driver.capability(9); }
    std::vector<std::string> calls() const {
        std::vector<std::string> all;
        for (const std::string &call : driver.calls()) all.push_back(call.substr(0, call.find(' ')));
        return all;
    }

    StandinRead read = nullptr;
    StandinReset reset_library = nullptr;
    Standin driver;
};

std::string hex(const void *pointer) {
    char text[32];
    std::snprintf(text, sizeof(text), "%zx", reinterpret_cast<size_t>(pointer));
    return text;
}

} // namespace

TEST_F(matmul, a_run_calls_the_library_and_nothing_else) {
    const Context context(SCALIDE_CUDA);
    Products products(context.handle, 48);
    ASSERT_EQ(products.bind(), SCALIDE_OK) << scalide_message(context.handle);
    ASSERT_EQ(scalide_step_count(products_cuda_program()), 2u);
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
    ASSERT_EQ(scalide_step_count(epilogues_cuda_program()), 2u);
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
    const size_t last = scalide_step_count(bound.program) - 1;
    const scalide_matmul &plan = *bound.program->steps[last].matmul;
    const auto of_kernel = [&](int32_t buffer) { return hex(bound.binding->buffers[buffer].memory); };
    EXPECT_NE(log.find("matmul operation compute=68 scale=0 3=1 4=0 7=1 17=" + of_kernel(plan.rhs_scales) +
                       " 18=" + of_kernel(plan.lhs_scales) + " 31=4 32=4\n"),
              std::string::npos)
        << log;
    EXPECT_NE(of_kernel(plan.lhs_scales), at(xs)) << "stored anew, row beside row";
    EXPECT_EQ(calls().back(), "cuCtxPopCurrent");
    EXPECT_EQ(calls()[calls().size() - 2], "cublasLtMatmul") << "after the kernels that store its scales";
}

TEST_F(matmul, tiles_of_scales_are_those_of_a_kernel) {
    driver.capability(10);
    const Context context(SCALIDE_CUDA);
    Mxfp8 bound(context.handle);
    ASSERT_EQ(bound.bind(), SCALIDE_OK) << scalide_message(context.handle);
    ASSERT_EQ(scalide_step_count(bound.program), 2u);
    EXPECT_STREQ(bound.step(1).library, "cublaslt") << bound.step(1).reason;
    reset();
    ASSERT_EQ(scalide_run(bound.binding), SCALIDE_OK);
    const scalide_matmul &plan = *bound.program->steps[1].matmul;
    const auto of_kernel = [&](int32_t buffer) { return hex(bound.binding->buffers[buffer].memory); };
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
    driver.capability(10);
    const Context newer(SCALIDE_CUDA);
    Blocks blocks(newer.handle, 48);
    Mxfp8 mx(older.handle);
    ASSERT_EQ(blocks.bind(), SCALIDE_OK) << scalide_message(newer.handle);
    ASSERT_EQ(mx.bind(), SCALIDE_OK) << scalide_message(older.handle);
    const std::string need = "matmul.a.scale: scales of rows and blocks of 128 need sm_90 and cuBLAS 12.9, vec32_ue8m0 needs sm_100 and "
                             "cuBLAS 12.8, got ";
    const size_t last = scalide_step_count(blocks.program) - 1;
    EXPECT_EQ(std::string(blocks.step(last).reason).find(need + "vec128 x vec128 on sm_100 with cuBLAS 130100."), 0u)
        << blocks.step(last).reason;
    EXPECT_EQ(std::string(mx.step(1).reason).find(need + "vec32_ue8m0 x vec32_ue8m0 on sm_90 with cuBLAS 130100."), 0u)
        << mx.step(1).reason;
    reset();
    ASSERT_EQ(scalide_run(blocks.binding), SCALIDE_OK);
    ASSERT_EQ(scalide_run(mx.binding), SCALIDE_OK);
    EXPECT_EQ(read().calls, 0) << "kernels alone";
}

/// Codes of -1, 0, 1 and 2, scales that are powers of two: sums are exact in any order.
TEST_F(matmul, scaled_products_are_equal_by_the_library_and_by_the_kernels) {
    const Computing computing;
    constexpr int64_t b = 48, n = 32, k = 256;
    const auto results = [&](int32_t capability) {
        driver.capability(capability);
        const Context context(SCALIDE_CUDA);
        Blocks bound(context.handle, b);
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
        EXPECT_EQ(bound.step(scalide_step_count(bound.program) - 1).library != nullptr, capability == 9);
        EXPECT_EQ(scalide_run(bound.binding), SCALIDE_OK) << scalide_message(context.handle);
        EXPECT_EQ(scalide_synchronise(context.handle), SCALIDE_OK);
        std::vector<uint8_t> all(bytes(Blocks::y), bytes(Blocks::y) + 2 * b * n);
        std::copy_n(bytes(Blocks::z), 4 * b * n, std::back_inserter(all)); // insert is a false warning of g++ 12
        return all;
    };
    const std::vector<uint8_t> of_library = results(9);
    EXPECT_EQ(of_library, results(10));
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
    for (size_t step = 0; step < scalide_step_count(bound.program); ++step)
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
    size_t kernels = 0;
    for (int64_t failing = 0; failing < 100; ++failing) {
        Accumulation bound(context.handle, 48);
        *bound.floats(Accumulation::w) = 1000;
        driver.reset(failing, out_of_memory);
        const scalide_status status = bound.bind();
        const std::vector<std::string> all = calls();
        driver.reset(-1, 0);
        EXPECT_EQ(*bound.floats(Accumulation::w), 1000.0f) << "call " << failing;
        if (static_cast<int64_t>(all.size()) <= failing) break;
        if (status != SCALIDE_OK || all[static_cast<size_t>(failing)] != "cuMemAlloc") continue;
        for (size_t step = 0; step < scalide_step_count(bound.program); ++step) {
            const char *reason = bound.step(step).reason;
            kernels += reason != nullptr;
            if (reason) {
                EXPECT_EQ(std::string(reason).find("cuMemAlloc must succeed, got "), 0u) << reason;
            }
        }
    }
    EXPECT_EQ(kernels, 2u) << "each product, where its own memory is refused";
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

TEST_F(matmul, what_the_library_cannot_do_a_kernel_does) {
    const Context context(SCALIDE_CUDA);
    Products products(context.handle, 7);
    ASSERT_EQ(products.bind(), SCALIDE_OK) << scalide_message(context.handle);
    EXPECT_EQ(products.step(0).library, nullptr);
    EXPECT_STREQ(products.step(0).reason,
                 "matmul.m: must be a multiple of 16 for f8 operands, got 7. Zeros are put behind extents that are numbers; "
                 "give a symbol step 16. [extents.m16]");
    EXPECT_STREQ(products.step(1).library, "cublaslt");
    reset();
    ASSERT_EQ(scalide_run(products.binding), SCALIDE_OK);
    EXPECT_EQ(calls(), (std::vector<std::string>{"cuCtxPushCurrent", "cuLaunchKernel", "cublasLtMatmul", "cuCtxPopCurrent"}));
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
    EXPECT_EQ(calls(), (std::vector<std::string>{"cuCtxPushCurrent", "cuStreamBeginCapture", "cublasLtMatmul", "cublasLtMatmul",
                                                 "cuStreamEndCapture", "cuGraphInstantiate", "cuGraphDestroy", "cuCtxPopCurrent"}));
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
        EXPECT_TRUE(!failed || is_search || std::string(first ? first : second).find("cuBLASLt: ") == 0) << failing;
        reset();
        EXPECT_EQ(scalide_run(products.binding), SCALIDE_OK) << failing;
        EXPECT_EQ(calls().size(), 4u) << failing;
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
                 "products_cuda.contract_2: cublasLtMatmul must succeed, got CUBLAS_STATUS_EXECUTION_FAILED. Create the context again.");
    EXPECT_EQ(scalide_run(products.binding), SCALIDE_DEVICE_FAILED) << "sticky";
}

/// Run twice: with the stand-in for cuBLASLt, and where there is none.
TEST_F(matmul, who_computes_depends_on_the_library) {
    const bool is_there = file_of_cublaslt()[0] == '/';
    const Context context(SCALIDE_CUDA);
    Products products(context.handle, 48);
    ASSERT_EQ(products.bind(), SCALIDE_OK) << scalide_message(context.handle);
    const std::string reason = products.step(0).reason ? products.step(0).reason : "";
    EXPECT_EQ(reason.find("none/libcublasLt.so: must be cuBLASLt, got the loader's error '") == 0, !is_there) << reason;
    driver.reset(-1, 0);
    ASSERT_EQ(scalide_run(products.binding), SCALIDE_OK);
    const std::string call = is_there ? "cublasLtMatmul" : "cuLaunchKernel";
    EXPECT_EQ(calls(), (std::vector<std::string>{"cuCtxPushCurrent", call, call, "cuCtxPopCurrent"}));
}

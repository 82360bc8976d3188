#pragma once
#include "../cublaslt/standin.h"
#include "accumulation_cuda.h"
#include "bind/binding.h"
#include "blocks_all.h"
#include "blocks_cuda.h"
#include "elementwise.h"
#include "epilogues_cuda.h"
#include "mxfp8_all.h"
#include "mxfp8_cuda.h"
#include "products_cuda.h"
#include "scalide/plan.h"
#include "standin_driver.h"
#include "tf32_cuda.h"
#include "widened_cuda.h"
#include <cstdlib>
#include <dlfcn.h>
#include <stdexcept>

namespace scalide::test {

template<typename Function>
Function find_symbol(const char *library, const char *name) {
    void *found = dlsym(dlopen(library, RTLD_NOW), name);
    if (!found) throw std::runtime_error(name);
    return reinterpret_cast<Function>(found);
}

inline std::string file_of_cublaslt() {
    const char *file = std::getenv("SCALIDE_CUBLASLT");
    return file ? file : "";
}

using Types = std::vector<std::pair<int32_t, std::vector<int64_t>>>;

/// A program of matmuls whose arrays are in the memory of a context.
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
    /// Moves argument `index` by this many bytes.
    scalide_status move(size_t index, size_t bytes) {
        arrays[index].data = static_cast<char *>(arrays[index].data) + bytes;
        return scalide_set_argument(binding, index, &arrays[index]);
    }
};

/// products.scl with batch size `b`.
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

/// epilogues.scl with batch size `b`.
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

/// blocks.scl with batch size `b`, built for sm_90 or for all GPU architectures.
struct Blocks : Bound {
    enum Place { x, w, rows, columns, c, xs, ws, y, z };
    Blocks(scalide_context *owner, int64_t b, const scalide_program *built = blocks_cuda_program())
        : Bound(owner, built,
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

/// accumulation.scl with batch size `b`.
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

/// widened.scl with batch size `b`.
struct Widened : Bound {
    enum Place { x, w, s, u, v, y, z };
    Widened(scalide_context *owner, int64_t b)
        : Bound(owner, widened_cuda_program(),
                {{SCALIDE_F8_E4M3FN, {b, 64}},
                 {SCALIDE_F8_E4M3FN, {32, 64}},
                 {SCALIDE_F32, {}},
                 {SCALIDE_BF16, {b, 64}},
                 {SCALIDE_F8_E5M2, {64, 48}},
                 {SCALIDE_F32, {b, 32}},
                 {SCALIDE_BF16, {b, 48}}}) {}
};

/// mxfp8.scl, built for sm_100 and sm_120 or for all GPU architectures.
struct Mxfp8 : Bound {
    explicit Mxfp8(scalide_context *owner, const scalide_program *built = mxfp8_cuda_program())
        : Bound(owner, built,
                {{SCALIDE_F8_E4M3FN, {128, 128}},
                 {SCALIDE_F8_E4M3FN, {32, 128}},
                 {SCALIDE_F8_E8M0FNU, {128, 4}},
                 {SCALIDE_F8_E8M0FNU, {32, 4}},
                 {SCALIDE_F32, {128, 32}}}) {}
};

/// Plans on the emulated driver and libraries, which log all calls.
class matmul : public testing::Test {
protected:
    matmul() {
        if (file_of_cublaslt()[0] != '/') return;
        read = find_symbol<StandinRead>(file_of_cublaslt().c_str(), "standin_read");
        reset_library = find_symbol<StandinReset>(file_of_cublaslt().c_str(), "standin_reset");
        reset();
    }
    void reset(int failing = -1) const {
        driver.reset(-1, 0);
        reset_library(failing, 2, 0);
    }
    ~matmul() override { driver.capability(90); }
    std::vector<std::string> calls() const {
        std::vector<std::string> all;
        for (const std::string &call : driver.calls()) all.push_back(call.substr(0, call.find(' ')));
        return all;
    }

    StandinRead read = nullptr;
    StandinReset reset_library = nullptr;
    Standin driver;
};

inline std::string hex(const void *pointer) {
    char text[32];
    std::snprintf(text, sizeof(text), "%zx", reinterpret_cast<size_t>(pointer));
    return text;
}

} // namespace scalide::test

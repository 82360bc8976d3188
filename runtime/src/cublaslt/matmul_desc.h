#pragma once
#include "base/text.h"
#include "scalide/scalide.h"

namespace scalide {

/// How the elements of a matrix are scaled. An element's value is its decoded data times its scale.
enum class ScaleMode : uint8_t {
    none,        ///< no scale
    tensor,      ///< one f32 scale
    outer_vec,   ///< one f32 scale per row of the matrix (m rows for a, n for b)
    vec128,      ///< one f32 scale per 128 elements along k
    blk128x128,  ///< one f32 scale per 128 x 128 elements
    vec32_ue8m0, ///< one e8m0 scale per 32 elements along k (MXFP8)
};
const char *to_string(ScaleMode mode);

/// Applied to the sum before D is scaled and stored. Generated kernels compute all other operations, because cuBLASLt's gelu is an
/// approximation and its bias gradients do not support f8.
enum class MatmulEpilogue : uint8_t { none, bias, relu, relu_bias };

constexpr int32_t no_dtype = -1;
/// Returns true for modes with a scale per 128 elements along k.
inline bool is_blocks(ScaleMode mode) { return mode == ScaleMode::vec128 || mode == ScaleMode::blk128x128; }
inline bool is_f8(int32_t dtype) { return dtype == SCALIDE_F8_E4M3FN || dtype == SCALIDE_F8_E5M2; }

/// A matrix in device memory.
struct MatmulMatrix {
    int32_t dtype = no_dtype; ///< scalide_dtype
    /// A and b: rows of k elements, otherwise k rows of m (or n) elements; c and d always have m rows of n elements
    bool k_contiguous = true;
    int64_t leading = 0;      ///< distance between rows in elements
    int64_t batch_stride = 0; ///< distance between matrices in elements
    uint64_t alignment = 256; ///< alignment of the pointer in bytes
    ScaleMode scale = ScaleMode::none;
    uint64_t scale_alignment = 256; ///< alignment of the pointer to the scales in bytes
};

/// One call of cuBLASLt, described with row-major matrices. It computes for each of `batch` matrices:
///   D[m, n] = epilogue(scale_a scale_b factor sum_k A[m, k] B[n, k] + addend_factor C[m, n] + bias[n]), times 1 / scale_d where D is f8.
/// amax is the largest magnitude of the epilogue's result, before D is scaled.
struct MatmulDesc {
    int64_t batch = 1, m = 0, n = 0, k = 0;
    MatmulMatrix a, b, d;
    MatmulMatrix c; ///< no_dtype: there is no addend
    MatmulEpilogue epilogue = MatmulEpilogue::none;
    int32_t bias_dtype = no_dtype;
    bool amax = false;              ///< computes the amax of D as f32
    bool fast_accumulation = false; ///< sums of f8 products keep 14 bits; otherwise they are added to f32 after every 128 products
    bool tf32 = false;              ///< f32 operands are rounded to 11 significant bits, to nearest
    bool has_factor = false;        ///< the sum is multiplied by an f32 in device memory; for f8 operands, a scale does this
    bool has_addend_factor = false; ///< C is multiplied by an f32 in device memory
    uint64_t workspace_bytes = 0;
};

/// The device that runs a matmul.
struct MatmulDevice {
    int32_t capability = 0; ///< 90: sm_90
    uint64_t library = 0;   ///< cublasLtGetVersion: 130100
};

/// One requirement of cuBLASLt. It is checked here because cuBLASLt itself only returns "not supported". Source: NVIDIA's cuBLAS manual,
/// `cublasLtMatmul`.
struct MatmulRule {
    const char *id;
    const char *field; ///< a field of MatmulDesc
    bool (*holds)(const MatmulDesc &, const MatmulDevice &);
    const char *requirement;
    void (*got)(Text &, const MatmulDesc &, const MatmulDevice &);
    const char *way_out;
    void (*wanted)(Text &, const MatmulDesc &, const MatmulDevice &) = nullptr; ///< continues `requirement` with values of the matmul
};

struct MatmulRules {
    const MatmulRule *rules;
    size_t count;
};
MatmulRules matmul_rules();

/// Returns the first requirement that is not met, or NULL if cuBLASLt may be called.
const MatmulRule *broken_rule(const MatmulDesc &desc, const MatmulDevice &device);
/// Prints `matmul.<field>: <requirement>, got <value>. <way out> [<id>]`.
void explain(const MatmulRule &rule, const MatmulDesc &desc, const MatmulDevice &device, Text &text);

} // namespace scalide

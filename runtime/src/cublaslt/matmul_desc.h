#pragma once
#include "scalide/scalide.h"
#include "text.h"

namespace scalide {

/// How the elements of a matrix are scaled. An element's value is its code times its scale.
enum class ScaleMode : uint8_t {
    none,        ///< 1
    tensor,      ///< one f32
    outer_vec,   ///< an f32 a row of the matrix (a: m of them, b: n)
    vec128,      ///< an f32 for 128 elements along k
    blk128x128,  ///< an f32 for 128 x 128 elements
    vec32_ue8m0, ///< an e8m0 for 32 elements along k (MXFP8)
};
const char *to_string(ScaleMode mode);

/// Applied to the sum before D is scaled and stored. What else a program wants is a kernel of ours: cuBLASLt's gelu is an approximation,
/// and its gradients of biases take no f8.
enum class MatmulEpilogue : uint8_t { none, bias, relu, relu_bias };

constexpr int32_t no_dtype = -1;
/// One scale for 128 elements along k.
inline bool is_blocks(ScaleMode mode) { return mode == ScaleMode::vec128 || mode == ScaleMode::blk128x128; }
inline bool is_f8(int32_t dtype) { return dtype == SCALIDE_F8_E4M3FN || dtype == SCALIDE_F8_E5M2; }

/// A matrix in device memory.
struct MatmulMatrix {
    int32_t dtype = no_dtype; ///< scalide_dtype
    bool k_contiguous = true; ///< a and b: rows of k elements; else k rows of m (or n) elements. c and d are always m rows of n
    int64_t leading = 0;      ///< elements from row to row
    int64_t batch_stride = 0; ///< elements from matrix to matrix
    uint64_t alignment = 256; ///< bytes, of the pointer
    ScaleMode scale = ScaleMode::none;
    uint64_t scale_alignment = 256; ///< bytes, of the pointer to the scales
};

/// One call of cuBLASLt in the words of our programs, for each of `batch` matrices:
///   D[m, n] = epilogue(scale_a scale_b factor sum_k A[m, k] B[n, k] + addend_factor C[m, n] + bias[n]), times 1 / scale_d where D is f8.
/// All matrices are row-major. amax is that of the epilogue's value, before D is scaled.
struct MatmulDesc {
    int64_t batch = 1, m = 0, n = 0, k = 0;
    MatmulMatrix a, b, d;
    MatmulMatrix c; ///< no_dtype: nothing is added
    MatmulEpilogue epilogue = MatmulEpilogue::none;
    int32_t bias_dtype = no_dtype;
    bool amax = false;              ///< of D, as f32
    bool fast_accumulation = false; ///< sums of f8 products keep 14 bits; else they move to f32 every 128 products
    bool tf32 = false;              ///< f32 operands are rounded to 11 bits
    bool has_factor = false;        ///< the sum is multiplied by an f32 in device memory; of f8 operands a scale is one
    bool has_addend_factor = false; ///< so is C
    uint64_t workspace_bytes = 0;
};

/// Who runs it.
struct MatmulDevice {
    int32_t capability = 0; ///< 90: sm_90
    uint64_t library = 0;   ///< cublasLtGetVersion: 130100
};

/// One requirement of cuBLASLt, which itself answers only "not supported". Sources: NVIDIA's cuBLAS manual, `cublasLtMatmul`.
struct MatmulRule {
    const char *id;
    const char *field; ///< of MatmulDesc
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

/// The first rule that does not hold; NULL when cuBLASLt can be asked.
const MatmulRule *broken_rule(const MatmulDesc &desc, const MatmulDevice &device);
/// `matmul.<field>: <requirement>, got <value>. <way out> [<id>]`.
void explain(const MatmulRule &rule, const MatmulDesc &desc, const MatmulDevice &device, Text &text);

} // namespace scalide

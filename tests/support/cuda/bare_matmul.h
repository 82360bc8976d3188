#pragma once
#include "cublaslt/cublaslt_abi.h"
#include <vector>

namespace scalide {

/// Returns the cublaslt::DataType of a scalide_dtype, or f32 if cuBLASLt does not multiply this dtype.
int32_t cublaslt_type(int32_t dtype);

/// A matmul as cuBLASLt describes it, column-major: D[m, n] = epilogue(op(A) op(B)). It may break the rules of a plan's matmul, so that a
/// test can ask cuBLASLt about such cases too.
struct BareDesc {
    int32_t a, b, d; ///< cublaslt::DataType
    int64_t m, n, k;
    bool a_k_contiguous = true, b_k_contiguous = true;
    uint32_t epilogue = cublaslt::epilogue_default;
    int32_t bias = cublaslt::r_16bf; ///< its type; where D is f8, C's too
    int32_t a_scale_mode = cublaslt::scalar_32f, b_scale_mode = cublaslt::scalar_32f;
    bool fast_accumulation = false;
    bool tf32 = false;
};

/// Device memory. Null: the operand is absent.
struct BarePointers {
    const void *a, *b;
    void *d;
    const void *scale_a = nullptr, *scale_b = nullptr, *scale_d = nullptr, *bias = nullptr;
    void *amax = nullptr;
    void *workspace = nullptr; ///< of bare_workspace bytes, or null: none
};
constexpr size_t bare_workspace = size_t{32} << 20;

/// The cuBLASLt calls for one matmul, without code of Scalide around them.
class BareMatmul {
public:
    /// Throws std::runtime_error with the name of the call if cuBLASLt rejects a descriptor.
    BareMatmul(const cublaslt::Calls &library, const BareDesc &desc, const BarePointers &pointers);
    ~BareMatmul();
    BareMatmul(const BareMatmul &) = delete;
    BareMatmul &operator=(const BareMatmul &) = delete;

    /// Returns at most `most` proposals of the heuristic, best first. It is empty if there is none.
    std::vector<cublaslt::HeuristicResult> candidates(int most) const;
    cublaslt::Status run(const cublaslt::Algorithm &algorithm, void *stream) const;

private:
    BareMatmul(const cublaslt::Calls &library, const BarePointers &pointers, bool d_is_f8);
    void check(cublaslt::Status status, const char *call) const;

    const cublaslt::Calls &library_;
    BarePointers pointers_;
    bool d_is_f8_;
    cublaslt::Handle handle_ = nullptr;
    cublaslt::Operation operation_ = nullptr;
    cublaslt::Layout a_ = nullptr, b_ = nullptr, c_ = nullptr, d_ = nullptr;
};

} // namespace scalide

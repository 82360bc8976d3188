#pragma once
#include "cublaslt/cublaslt_abi.h"
#include <vector>

namespace scalide {

/// cublaslt::DataType of a scalide_dtype; f32 for those that it does not multiply.
int32_t cublaslt_type(int32_t dtype);

/// A product in cuBLASLt's own words, column-major: D[m, n] = epilogue(op(A) op(B)). It keeps no rules: what those of a plan's matmul
/// forbid can be asked of the library too.
struct BareDesc {
    int32_t a, b, d; ///< cublaslt::DataType
    int64_t m, n, k;
    bool a_k_contiguous = true, b_k_contiguous = true;
    uint32_t epilogue = cublaslt::epilogue_default;
    int32_t bias = cublaslt::r_16bf; ///< its type; where D is f8, C's too
    int32_t a_scale_mode = cublaslt::scalar_32f, b_scale_mode = cublaslt::scalar_32f;
    bool fast_accumulation = false;
};

/// Device memory; what is absent is null.
struct BarePointers {
    const void *a, *b;
    void *d;
    const void *scale_a = nullptr, *scale_b = nullptr, *scale_d = nullptr, *bias = nullptr;
    void *amax = nullptr;
    void *workspace = nullptr; ///< of bare_workspace bytes, or null: none
};
constexpr size_t bare_workspace = size_t{32} << 20;

/// The calls of cuBLASLt for one product, without anything of ours around them.
class BareMatmul {
public:
    /// Throws std::runtime_error, naming the call, where the library refuses a descriptor.
    BareMatmul(const cublaslt::Calls &library, const BareDesc &desc, const BarePointers &pointers);
    ~BareMatmul();
    BareMatmul(const BareMatmul &) = delete;
    BareMatmul &operator=(const BareMatmul &) = delete;

    /// What the heuristic proposes, at most so many, best first; empty where it has nothing.
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

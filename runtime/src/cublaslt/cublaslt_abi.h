#pragma once
#include <cstddef>
#include <cstdint>

/// The part of cuBLASLt's C interface that the runtime calls. It is declared here so that no CUDA header is needed. Numbers and layouts are
/// from cublasLt.h and library_types.h of CUDA 12.8 to 13.0, where they are stable. If the headers are installed,
/// tests/cublaslt/cublaslt_abi.cpp compares them.
namespace scalide::cublaslt {

using Handle = struct HandleOpaque *;
using Operation = struct OperationOpaque *;   ///< cublasLtMatmulDesc_t
using Layout = struct LayoutOpaque *;         ///< cublasLtMatrixLayout_t
using Preference = struct PreferenceOpaque *; ///< cublasLtMatmulPreference_t
using Status = int32_t;

struct Algorithm {
    uint64_t data[8];
};
struct HeuristicResult {
    Algorithm algorithm;
    size_t workspace;
    Status state;
    float waves;
    int32_t reserved[4];
};

enum DataType : int32_t { r_32f = 0, r_16f = 2, r_16bf = 14, r_8f_e4m3 = 28, r_8f_e5m2 = 29 };
enum ComputeType : int32_t { compute_32f = 68, compute_32f_fast_tf32 = 77 };
enum Transpose : int32_t { op_n = 0, op_t = 1 };
enum Epilogue : uint32_t { epilogue_default = 1, epilogue_relu = 2, epilogue_bias = 4 };
enum Scale : int32_t { scalar_32f = 0, vec32_ue8m0 = 2, outer_vec_32f = 3, vec128_32f = 4, blk128x128_32f = 5 };
constexpr uint32_t reduction_compute_type = 2;

constexpr int32_t pointer_mode_device = 1;

enum OperationAttribute : int32_t {
    pointer_mode = 2,
    transa = 3,
    transb = 4,
    epilogue = 7,
    bias_pointer = 8,
    a_scale_pointer = 17,
    b_scale_pointer = 18,
    d_scale_pointer = 20,
    amax_d_pointer = 21,
    fast_accum = 25,
    bias_data_type = 26,
    a_scale_mode = 31,
    b_scale_mode = 32,
};
enum LayoutAttribute : int32_t { batch_count = 5, strided_batch_offset = 6 };
enum PreferenceAttribute : int32_t {
    max_workspace_bytes = 1,
    reduction_scheme_mask = 3,
    min_alignment_a = 5,
    min_alignment_b = 6,
    min_alignment_c = 7,
    min_alignment_d = 8,
};

/// Every function that the runtime calls: X(member, symbol, result, parameters).
#define SCALIDE_CUBLASLT_CALLS(X)                                                                                                          \
    X(version, cublasLtGetVersion, size_t, ())                                                                                             \
    X(status_name, cublasLtGetStatusName, const char *, (Status))                                                                          \
    X(create, cublasLtCreate, Status, (Handle *))                                                                                          \
    X(destroy, cublasLtDestroy, Status, (Handle))                                                                                          \
    X(create_operation, cublasLtMatmulDescCreate, Status, (Operation *, int32_t compute, int32_t scale_type))                              \
    X(destroy_operation, cublasLtMatmulDescDestroy, Status, (Operation))                                                                   \
    X(set_operation, cublasLtMatmulDescSetAttribute, Status, (Operation, int32_t, const void *, size_t))                                   \
    X(create_layout, cublasLtMatrixLayoutCreate, Status, (Layout *, int32_t type, uint64_t rows, uint64_t columns, int64_t leading))       \
    X(destroy_layout, cublasLtMatrixLayoutDestroy, Status, (Layout))                                                                       \
    X(set_layout, cublasLtMatrixLayoutSetAttribute, Status, (Layout, int32_t, const void *, size_t))                                       \
    X(create_preference, cublasLtMatmulPreferenceCreate, Status, (Preference *))                                                           \
    X(destroy_preference, cublasLtMatmulPreferenceDestroy, Status, (Preference))                                                           \
    X(set_preference, cublasLtMatmulPreferenceSetAttribute, Status, (Preference, int32_t, const void *, size_t))                           \
    X(find_algorithms, cublasLtMatmulAlgoGetHeuristic, Status,                                                                             \
      (Handle, Operation, Layout a, Layout b, Layout c, Layout d, Preference, int wanted, HeuristicResult *, int *found))                  \
    X(matmul, cublasLtMatmul, Status,                                                                                                      \
      (Handle, Operation, const void *alpha, const void *a, Layout, const void *b, Layout, const void *beta, const void *c, Layout,        \
       void *d, Layout, const Algorithm *, void *workspace, size_t workspace_bytes, void *stream))

/// The functions of a loaded library.
struct Calls {
#define SCALIDE_MEMBER(member, symbol, result, parameters) result(*member) parameters;
    SCALIDE_CUBLASLT_CALLS(SCALIDE_MEMBER)
#undef SCALIDE_MEMBER
};

} // namespace scalide::cublaslt

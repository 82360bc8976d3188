// Compiles where our declarations of cuBLASLt are NVIDIA's.
#include "cublaslt/cublaslt_abi.h"
#include <cublasLt.h>
#include <type_traits>

namespace scalide::cublaslt {

static_assert(sizeof(Algorithm) == sizeof(cublasLtMatmulAlgo_t));
static_assert(sizeof(HeuristicResult) == sizeof(cublasLtMatmulHeuristicResult_t));
static_assert(offsetof(HeuristicResult, workspace) == offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize));
static_assert(offsetof(HeuristicResult, state) == offsetof(cublasLtMatmulHeuristicResult_t, state));

#define SCALIDE_SAME(ours, theirs) static_assert(static_cast<int64_t>(ours) == static_cast<int64_t>(theirs), #theirs)
SCALIDE_SAME(r_32f, CUDA_R_32F);
SCALIDE_SAME(r_16f, CUDA_R_16F);
SCALIDE_SAME(r_16bf, CUDA_R_16BF);
SCALIDE_SAME(r_8f_e4m3, CUDA_R_8F_E4M3);
SCALIDE_SAME(r_8f_e5m2, CUDA_R_8F_E5M2);
SCALIDE_SAME(compute_32f, CUBLAS_COMPUTE_32F);
SCALIDE_SAME(compute_32f_fast_tf32, CUBLAS_COMPUTE_32F_FAST_TF32);
SCALIDE_SAME(op_n, CUBLAS_OP_N);
SCALIDE_SAME(op_t, CUBLAS_OP_T);
SCALIDE_SAME(epilogue_default, CUBLASLT_EPILOGUE_DEFAULT);
SCALIDE_SAME(epilogue_relu, CUBLASLT_EPILOGUE_RELU);
SCALIDE_SAME(epilogue_bias, CUBLASLT_EPILOGUE_BIAS);
SCALIDE_SAME(epilogue_relu | epilogue_bias, CUBLASLT_EPILOGUE_RELU_BIAS);
SCALIDE_SAME(scalar_32f, CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F);
SCALIDE_SAME(vec32_ue8m0, CUBLASLT_MATMUL_MATRIX_SCALE_VEC32_UE8M0);
SCALIDE_SAME(outer_vec_32f, CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F);
SCALIDE_SAME(vec128_32f, CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F);
SCALIDE_SAME(blk128x128_32f, CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F);
SCALIDE_SAME(reduction_compute_type, CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
SCALIDE_SAME(pointer_mode, CUBLASLT_MATMUL_DESC_POINTER_MODE);
SCALIDE_SAME(pointer_mode_device, CUBLASLT_POINTER_MODE_DEVICE);
SCALIDE_SAME(transa, CUBLASLT_MATMUL_DESC_TRANSA);
SCALIDE_SAME(transb, CUBLASLT_MATMUL_DESC_TRANSB);
SCALIDE_SAME(epilogue, CUBLASLT_MATMUL_DESC_EPILOGUE);
SCALIDE_SAME(bias_pointer, CUBLASLT_MATMUL_DESC_BIAS_POINTER);
SCALIDE_SAME(a_scale_pointer, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER);
SCALIDE_SAME(b_scale_pointer, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER);
SCALIDE_SAME(d_scale_pointer, CUBLASLT_MATMUL_DESC_D_SCALE_POINTER);
SCALIDE_SAME(amax_d_pointer, CUBLASLT_MATMUL_DESC_AMAX_D_POINTER);
SCALIDE_SAME(fast_accum, CUBLASLT_MATMUL_DESC_FAST_ACCUM);
SCALIDE_SAME(bias_data_type, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE);
SCALIDE_SAME(a_scale_mode, CUBLASLT_MATMUL_DESC_A_SCALE_MODE);
SCALIDE_SAME(b_scale_mode, CUBLASLT_MATMUL_DESC_B_SCALE_MODE);
SCALIDE_SAME(batch_count, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT);
SCALIDE_SAME(strided_batch_offset, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET);
SCALIDE_SAME(max_workspace_bytes, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
SCALIDE_SAME(reduction_scheme_mask, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK);
SCALIDE_SAME(min_alignment_a, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES);
SCALIDE_SAME(min_alignment_b, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES);
SCALIDE_SAME(min_alignment_c, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES);
SCALIDE_SAME(min_alignment_d, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);

/// As many parameters, of the same sizes: handles, enums and numbers differ by name only.
template<typename A, typename B>
struct Alike : std::false_type {};
template<typename R, typename... A, typename S, typename... B>
struct Alike<R (*)(A...), S (*)(B...)> : std::bool_constant<sizeof(R) == sizeof(S) && ((sizeof(A) == sizeof(B)) && ...)> {};
#define SCALIDE_ALIKE(member, symbol, result, parameters)                                                                                  \
    static_assert(Alike<decltype(Calls::member), decltype(&::symbol)>::value, #symbol);
SCALIDE_CUBLASLT_CALLS(SCALIDE_ALIKE)

} // namespace scalide::cublaslt

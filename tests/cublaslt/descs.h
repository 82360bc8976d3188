#pragma once
#include "cublaslt/cublaslt.h"
#include <string>
#include <vector>

namespace scalide {

/// Describes D[m, n] of two f8_e4m3fn operands. Both are contiguous along k, and each has one scale.
MatmulDesc f8_matmul(int64_t m, int64_t n, int64_t k);
/// Describes a device with sm_90 and cuBLAS 13.1.
MatmulDevice hopper();

/// The matmuls of a training step of one layer, tokens x in -> tokens x out: forward (bias, fast accumulation), the gradient of its input
/// (e5m2 x e4m3) and that of its weights (f32).
struct NamedDesc {
    std::string name;
    MatmulDesc desc;
};
std::vector<NamedDesc> f8_layer(int64_t tokens, int64_t in, int64_t out);

} // namespace scalide

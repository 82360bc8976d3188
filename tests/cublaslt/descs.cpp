#include "descs.h"

namespace scalide {

namespace {

MatmulMatrix matrix(int32_t dtype, int64_t leading, ScaleMode scale = ScaleMode::none) {
    MatmulMatrix made;
    made.dtype = dtype;
    made.leading = leading;
    made.scale = scale;
    return made;
}

} // namespace

MatmulDesc f8_matmul(int64_t m, int64_t n, int64_t k) {
    MatmulDesc desc;
    desc.m = m, desc.n = n, desc.k = k;
    desc.a = matrix(SCALIDE_F8_E4M3FN, k, ScaleMode::tensor);
    desc.b = matrix(SCALIDE_F8_E4M3FN, k, ScaleMode::tensor);
    desc.d = matrix(SCALIDE_BF16, n);
    desc.workspace_bytes = 32 << 20;
    return desc;
}

MatmulDevice hopper() { return {90, 130100}; }

std::vector<NamedDesc> f8_layer(int64_t tokens, int64_t in, int64_t out) {
    MatmulDesc forward = f8_matmul(tokens, out, in);
    forward.epilogue = MatmulEpilogue::bias;
    forward.bias_dtype = SCALIDE_BF16;
    forward.fast_accumulation = true;
    MatmulDesc of_input = f8_matmul(tokens, in, out);
    of_input.a.dtype = SCALIDE_F8_E5M2;
    MatmulDesc of_weights = f8_matmul(out, in, tokens);
    of_weights.a.dtype = SCALIDE_F8_E5M2;
    of_weights.d = matrix(SCALIDE_F32, in);
    MatmulDesc narrow = forward;
    narrow.d = matrix(SCALIDE_F8_E4M3FN, out, ScaleMode::tensor);
    narrow.amax = true;
    return {{"forward", forward}, {"gradient of input", of_input}, {"gradient of weights", of_weights}, {"forward to f8", narrow}};
}

} // namespace scalide

#pragma once
#include <string>
#include <vector>

namespace scalide {

/// A kernel for what no kernel of ours does, in PTX text of sm_80. Its parameters: `in`, `out` and `side` (device memory), `columns` and
/// `rows` (u32). Arrays begin at multiples of 16 bytes and are of whole blocks.
struct ProbeKernel {
    std::string name, ptx;
    int threads = 256;    ///< of a block
    int shared_bytes = 0; ///< of a block
};

/// How e5m2 becomes gelu of e5m2 (rounded toward zero): 16 elements a thread.
ProbeKernel gelu_by_exponential(); ///< x / (1 + 2^(-2 u log2 e)): ex2.approx and rcp.approx
ProbeKernel gelu_by_tangent();     ///< (x + x tanh u) / 2: tanh.approx

/// bf16 becomes e5m2 (rounded toward zero), 16 elements a thread; `side`: the bits of the largest magnitude, as f32, of each ...
ProbeKernel amax_of_threads();
ProbeKernel amax_of_blocks();
/// `side`: the largest word of each 4096 of `in`.
ProbeKernel largest_words();

/// out[c, r] = in[r, c] of bytes in tiles of 128 x 128, a block a tile; stores of 4 or of 16 bytes.
ProbeKernel transpose(int bytes);

/// out[b, c]: the sum of f32 in[r, c] over `rows` rows of block b along y, a multiple of 8; a thread a column, which reads 8 ahead.
ProbeKernel column_sums();

/// Softmax of bf16 rows of `columns`, a power of two from 128 to 4096, kept in registers; a block of threads a row, or a warp.
ProbeKernel softmax_in_block(int columns);
ProbeKernel softmax_in_warp(int columns);

/// Doubles bf16, 16 bytes at a time: so many a thread, with neighbours side by side.
ProbeKernel doubles(int vectors, int threads);

/// All of them, with the parameters that the probes choose.
std::vector<ProbeKernel> probe_kernels();

} // namespace scalide

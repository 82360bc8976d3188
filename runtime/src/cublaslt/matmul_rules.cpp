// What cuBLASLt supports: types, layouts, extents, scales and epilogues. Each table entry is one requirement, and it may assume that all
// entries above it are met.
#include "matmul_desc.h"

namespace scalide {

namespace {

using D = const MatmulDesc &;
using G = const MatmulDevice &; ///< the GPU and its cuBLASLt version

bool multiplies_f8(D desc) { return is_f8(desc.a.dtype); }
bool is_f16(int32_t dtype) { return dtype == SCALIDE_F16 || dtype == SCALIDE_BF16; }
bool is_one_scale(ScaleMode mode) { return mode == ScaleMode::none || mode == ScaleMode::tensor; }
bool adds(D desc) { return desc.c.dtype != no_dtype; }
bool has_bias(D desc) { return desc.epilogue == MatmulEpilogue::bias || desc.epilogue == MatmulEpilogue::relu_bias; }
bool has_relu(D desc) { return desc.epilogue == MatmulEpilogue::relu || desc.epilogue == MatmulEpilogue::relu_bias; }

bool divides(int64_t number, int64_t bytes, int32_t dtype) { return number * static_cast<int64_t>(scalide_dtype_size(dtype)) % bytes == 0; }

/// A pair of operand dtypes and the dtypes that D may have with it.
struct TypeRow {
    int32_t a, b;
    bool f32, f16, bf16, e4m3, e5m2;
};
constexpr TypeRow types[] = {
    {SCALIDE_F32, SCALIDE_F32, true, false, false, false, false},
    {SCALIDE_F16, SCALIDE_F16, true, true, false, false, false},
    {SCALIDE_BF16, SCALIDE_BF16, true, false, true, false, false},
    {SCALIDE_F8_E4M3FN, SCALIDE_F8_E4M3FN, true, true, true, true, false},
    {SCALIDE_F8_E4M3FN, SCALIDE_F8_E5M2, true, true, true, true, true},
    {SCALIDE_F8_E5M2, SCALIDE_F8_E4M3FN, true, true, true, true, true},
};

const TypeRow *find_types(D desc) {
    for (const TypeRow &row : types)
        if (row.a == desc.a.dtype && row.b == desc.b.dtype) return &row;
    return nullptr;
}

bool takes_result(D desc) {
    const TypeRow &row = *find_types(desc);
    switch (desc.d.dtype) {
    case SCALIDE_F32: return row.f32;
    case SCALIDE_F16: return row.f16;
    case SCALIDE_BF16: return row.bf16;
    case SCALIDE_F8_E4M3FN: return row.e4m3;
    case SCALIDE_F8_E5M2: return row.e5m2;
    default: return false;
    }
}

bool takes_addend(D desc) { return is_f8(desc.d.dtype) ? is_f16(desc.c.dtype) : desc.c.dtype == desc.d.dtype; }

bool takes_bias(D desc) {
    if (!multiplies_f8(desc)) return desc.bias_dtype == desc.d.dtype;
    if (!is_f8(desc.d.dtype)) return desc.bias_dtype == (desc.d.dtype == SCALIDE_F16 ? SCALIDE_F16 : SCALIDE_BF16);
    return is_f16(desc.bias_dtype) && (!adds(desc) || desc.bias_dtype == desc.c.dtype);
}

/// Returns how many elements along k share a scale, or 1 if the number does not matter.
int64_t block_of(ScaleMode mode) { return is_blocks(mode) ? 128 : mode == ScaleMode::vec32_ue8m0 ? 32 : 1; }

/// Returns whether the device supports a mode of scaling.
bool has_mode(ScaleMode mode, G device) {
    switch (mode) {
    case ScaleMode::outer_vec:
    case ScaleMode::vec128:
    case ScaleMode::blk128x128: return device.capability == 90 && device.library >= 120900;
    case ScaleMode::vec32_ue8m0: return device.capability >= 100 && device.library >= 120800;
    default: return true;
    }
}

bool may_meet(ScaleMode a, ScaleMode b) {
    if (is_one_scale(a)) return is_one_scale(b);
    if (is_blocks(a)) return is_blocks(b) && !(a == ScaleMode::blk128x128 && b == ScaleMode::blk128x128);
    return a == b;
}

bool is_aligned(const MatmulMatrix &matrix) { return matrix.alignment % 16 == 0; }
bool scale_is_aligned(const MatmulMatrix &matrix) { return matrix.scale == ScaleMode::none || matrix.scale_alignment % 16 == 0; }
bool rows_fit(const MatmulMatrix &matrix, int64_t row) { return matrix.leading >= row; }
bool rows_aligned(const MatmulMatrix &matrix) { return divides(matrix.leading, 16, matrix.dtype); }

void say_types(Text &text, D desc, G) { text << scalide_dtype_name(desc.a.dtype) << " x " << scalide_dtype_name(desc.b.dtype); }
void say_result(Text &text, D desc, G device) {
    say_types(text, desc, device);
    text << " -> " << scalide_dtype_name(desc.d.dtype);
}
void say_modes(Text &text, D desc, G) { text << to_string(desc.a.scale) << " x " << to_string(desc.b.scale); }
void say_modes_here(Text &text, D desc, G device) {
    say_modes(text, desc, device);
    text << " on sm_" << device.capability << " with cuBLAS " << device.library;
}
void say_extents(Text &text, D desc, G) { text << "m " << desc.m << ", n " << desc.n << ", k " << desc.k << ", batch " << desc.batch; }
void say_layouts(Text &text, D desc, G device) {
    text << "a " << (desc.a.k_contiguous ? "[m, k]" : "[k, m]") << ", b " << (desc.b.k_contiguous ? "[n, k]" : "[k, n]") << " on sm_"
         << device.capability;
}
void say_leading(Text &text, D desc, G) {
    text << "a " << desc.a.leading << ", b " << desc.b.leading << ", d " << desc.d.leading;
    if (adds(desc)) text << ", c " << desc.c.leading;
}
void say_alignment(Text &text, D desc, G) {
    text << "a " << desc.a.alignment << ", b " << desc.b.alignment << ", d " << desc.d.alignment;
    if (adds(desc)) text << ", c " << desc.c.alignment;
}
void say_device(Text &text, D, G device) { text << "sm_" << device.capability; }
void say_addend(Text &text, D desc, G) { text << scalide_dtype_name(desc.c.dtype) << " for " << scalide_dtype_name(desc.d.dtype); }
void say_bias(Text &text, D desc, G) { text << scalide_dtype_name(desc.bias_dtype); }
/// "bias for result f32 must be bf16"
void say_wanted_bias(Text &text, D desc, G) {
    text << " for result " << scalide_dtype_name(desc.d.dtype) << " must be ";
    if (!multiplies_f8(desc)) {
        text << scalide_dtype_name(desc.d.dtype);
    } else if (!is_f8(desc.d.dtype)) {
        text << (desc.d.dtype == SCALIDE_F16 ? "f16" : "bf16");
    } else {
        text << (adds(desc) ? scalide_dtype_name(desc.c.dtype) : "f16 or bf16");
    }
}
void say_d(Text &text, D desc, G) { text << scalide_dtype_name(desc.d.dtype); }
void say_d_scale(Text &text, D desc, G) { text << to_string(desc.d.scale) << " of " << scalide_dtype_name(desc.d.dtype); }
void say_n(Text &text, D desc, G) { text << desc.n << " of " << scalide_dtype_name(desc.d.dtype); }
void say_m(Text &text, D desc, G) { text << desc.m; }
void say_k(Text &text, D desc, G) { text << desc.k; }
void say_scale_alignment(Text &text, D desc, G) {
    text << "a " << desc.a.scale_alignment << ", b " << desc.b.scale_alignment;
    if (desc.d.scale != ScaleMode::none) text << ", d " << desc.d.scale_alignment;
}

constexpr const char *ours = "A generated kernel computes this matmul.";
constexpr const char *pad = "Fixed extents are padded with zeros; declare a symbol with step 16.";
constexpr const char *epilogue_kernel = "A generated kernel does this after the matmul.";

constexpr MatmulRule rules[] = {
    {"extents.positive", "m", [](D d, G) { return d.m > 0 && d.n > 0 && d.k > 0 && d.batch > 0; }, "extents must be positive", say_extents,
     "The result is empty, so nothing is computed."},
    {"types.pair", "a.dtype", [](D d, G) { return find_types(d) != nullptr; },
     "operands must be f32 x f32, f16 x f16, bf16 x bf16 or f8 x f8 other than e5m2 x e5m2", say_types, ours},
    {"types.device", "a.dtype", [](D d, G g) { return !multiplies_f8(d) || g.capability >= 89; }, "f8 operands need sm_89 or later",
     say_device, ours},
    {"types.result", "d.dtype", [](D d, G) { return takes_result(d); },
     "result must be f32, or the operands' 16-bit dtype, or for f8 operands f16, bf16, f8_e4m3fn, and f8_e5m2 if one operand is e5m2",
     say_result, ours},
    {"types.addend", "c.dtype", [](D d, G) { return !adds(d) || takes_addend(d); },
     "addend must have the dtype of the result; for f8 results it must be f16 or bf16", say_addend, epilogue_kernel},
    {"types.bias", "bias_dtype", [](D d, G) { return !has_bias(d) || takes_bias(d); }, "bias", say_bias, epilogue_kernel, say_wanted_bias},
    {"types.tf32", "tf32", [](D d, G g) { return !d.tf32 || (d.a.dtype == SCALIDE_F32 && g.capability >= 80); },
     "TF32 needs f32 operands and sm_80 or later", say_types, "Leave it out."},
    {"factor.f8", "has_factor", [](D d, G) { return !d.has_factor || !multiplies_f8(d); },
     "a separate factor needs operands of 16 or 32 bits", say_types, "The scale of an f8 operand is a factor."},
    {"factor.addend", "has_addend_factor", [](D d, G) { return !d.has_addend_factor || adds(d); }, "a factor of the addend needs an addend",
     nullptr, "Leave it out."},
    {"layouts.contiguous_k", "a.k_contiguous",
     [](D d, G g) { return !multiplies_f8(d) || (d.a.k_contiguous && d.b.k_contiguous) || g.capability / 10 == 10; },
     "f8 operands must be contiguous along k on all GPUs except sm_100", say_layouts,
     "The kernel that computes the operand stores its transpose, too."},
    {"layouts.rows", "a.leading",
     [](D d, G) {
         return rows_fit(d.a, d.a.k_contiguous ? d.k : d.m) && rows_fit(d.b, d.b.k_contiguous ? d.k : d.n) && rows_fit(d.d, d.n) &&
                (!adds(d) || rows_fit(d.c, d.n));
     },
     "rows must not overlap", say_leading, "The leading dimension is at least the length of a row."},
    {"extents.k16", "k", [](D d, G) { return !multiplies_f8(d) || d.k % 16 == 0; }, "must be a multiple of 16 for f8 operands", say_k, pad},
    {"extents.n16", "n", [](D d, G) { return !multiplies_f8(d) || divides(d.n, 16, d.d.dtype); },
     "rows of the result must be multiples of 16 bytes", say_n, pad},
    // With these two checks, m and n are multiples of 4, which scales of 128 elements require. cuBLASLt documents no constraint on m, but
    // pytorch#167882 failed with m = 15 for an unknown reason.
    {"extents.m16", "m", [](D d, G) { return !multiplies_f8(d) || d.m % 16 == 0; }, "must be a multiple of 16 for f8 operands", say_m, pad},
    {"alignment.matrices", "a.alignment",
     [](D d, G) { return !multiplies_f8(d) || (is_aligned(d.a) && is_aligned(d.b) && is_aligned(d.d) && (!adds(d) || is_aligned(d.c))); },
     "pointers must be multiples of 16 bytes with f8 operands", say_alignment, "Use scalide_allocate."},
    {"alignment.rows", "a.leading",
     [](D d, G) {
         return !multiplies_f8(d) || (rows_aligned(d.a) && rows_aligned(d.b) && rows_aligned(d.d) && (!adds(d) || rows_aligned(d.c)));
     },
     "rows must begin at multiples of 16 bytes with f8 operands", say_leading, pad},
    // NVIDIA's manual asks for this only from arrays of scales. On an H100 with driver 580 and cuBLASLt 13.1 (2026-11-26), the 5 f8 matmuls
    // of a program whose single scale was at a multiple of 16 bytes ran, and the 7 others were refused without a reason.
    {"alignment.scales", "a.scale_alignment",
     [](D d, G) { return scale_is_aligned(d.a) && scale_is_aligned(d.b) && scale_is_aligned(d.d); },
     "scales must begin at multiples of 16 bytes", say_scale_alignment, "Use scalide_allocate."},
    {"scales.f8", "a.scale", [](D d, G) { return multiplies_f8(d) || (d.a.scale == ScaleMode::none && d.b.scale == ScaleMode::none); },
     "only f8 operands can have scales", say_modes, epilogue_kernel},
    {"scales.device", "a.scale", [](D d, G g) { return has_mode(d.a.scale, g) && has_mode(d.b.scale, g); },
     "scales of rows and blocks of 128 need sm_90 and cuBLAS 12.9, vec32_ue8m0 needs sm_100 and cuBLAS 12.8", say_modes_here,
     "One scale per tensor works on sm_89 and later."},
    {"scales.pair", "b.scale", [](D d, G) { return may_meet(d.a.scale, d.b.scale); },
     "both operands must have the same scale layout; with blocks of 128, one must be vec128", say_modes,
     "Quantize both operands in the same way."},
    {"scales.k", "k", [](D d, G) { return d.k % block_of(d.a.scale) == 0 && d.k % block_of(d.b.scale) == 0; },
     "must be a multiple of the scale block", say_k, "The scales of a program cover whole blocks."},
    {"scales.result", "d.scale",
     [](D d, G) { return d.d.scale == ScaleMode::none || (d.d.scale == ScaleMode::tensor && is_f8(d.d.dtype)); },
     "only an f8 result can have a scale, one per tensor", say_d_scale, "Multiply the scale of an operand by it."},
    {"scales.result_f8", "d.dtype", [](D d, G) { return is_one_scale(d.a.scale) || !is_f8(d.d.dtype); },
     "result must be f32, f16 or bf16 if operands have one scale per row or block", say_d, epilogue_kernel},
    {"amax.result", "amax", [](D d, G) { return !d.amax || is_f8(d.d.dtype); }, "only an f8 result can have an amax", say_d,
     epilogue_kernel},
    {"accumulation.f8", "fast_accumulation", [](D d, G) { return !d.fast_accumulation || multiplies_f8(d); },
     "fast accumulation needs f8 operands", say_types, "Leave it out."},
    {"accumulation.blocks", "fast_accumulation",
     [](D d, G) { return !d.fast_accumulation || !(is_blocks(d.a.scale) || is_blocks(d.b.scale)); },
     "fast accumulation cannot be used with one scale per block", say_modes, "Leave it out."},
    {"epilogue.blocks", "epilogue", [](D d, G) { return !has_relu(d) || !(is_blocks(d.a.scale) || is_blocks(d.b.scale)); },
     "epilogue must be none or bias if operands have one scale per block", say_modes, epilogue_kernel},
    {"batch.scales", "batch", [](D d, G) { return d.batch == 1 || (is_one_scale(d.a.scale) && is_one_scale(d.b.scale)); },
     "must be 1 if operands have one scale per row or block", say_extents, "Use one matmul per call."},
};

} // namespace

const char *to_string(ScaleMode mode) {
    constexpr const char *names[] = {"none", "tensor", "outer_vec", "vec128", "blk128x128", "vec32_ue8m0"};
    return names[static_cast<size_t>(mode)];
}

MatmulRules matmul_rules() { return {rules, sizeof(rules) / sizeof(rules[0])}; }

const MatmulRule *broken_rule(const MatmulDesc &desc, const MatmulDevice &device) {
    for (const MatmulRule &rule : rules)
        if (!rule.holds(desc, device)) return &rule;
    return nullptr;
}

void explain(const MatmulRule &rule, const MatmulDesc &desc, const MatmulDevice &device, Text &text) {
    text << "matmul." << rule.field << ": " << rule.requirement;
    if (rule.wanted) rule.wanted(text, desc, device);
    if (rule.got) rule.got(text << ", got ", desc, device);
    text << ". " << rule.way_out << " [" << rule.id << ']';
}

} // namespace scalide

#include "devices/convert_kernels.h"
#include "scalide/scalide.h"

namespace scalide {

namespace {

// Each thread takes every n-th element, where n is the number of threads.
#define SCALIDE_PTX_LOOP(name, from_bytes, to_bytes, before, body, after)                                                                  \
    ".visible .entry " name "(.param .u64 from, .param .u64 to, .param .u32 count, .param .u64 factor, .param .u64 amax)\n"                \
    "{\n"                                                                                                                                  \
    ".reg .pred %last, %has_factor, %has_amax;\n"                                                                                          \
    ".reg .b16 %half, %other, %byte;\n"                                                                                                    \
    ".reg .b32 %block, %threads, %index, %step, %count, %word, %pair, %amax;\n"                                                            \
    ".reg .f32 %value, %factor, %zero;\n"                                                                                                  \
    ".reg .b64 %from, %to, %base, %wide, %pointer;\n"                                                                                      \
    "mov.u32 %block, %ctaid.x; mov.u32 %threads, %ntid.x; mov.u32 %index, %tid.x; mad.lo.u32 %index, %block, %threads, %index;\n"          \
    "mov.u32 %step, %nctaid.x; mul.lo.u32 %step, %step, %threads; ld.param.u32 %count, [count];\n" before "$" name                         \
    "_next: setp.ge.u32 %last, %index, %count; @%last bra $" name "_end;\n"                                                                \
    "cvt.u64.u32 %wide, %index; ld.param.u64 %base, [from]; mad.lo.s64 %from, %wide, " from_bytes ", %base;\n"                             \
    "ld.param.u64 %base, [to]; mad.lo.s64 %to, %wide, " to_bytes ", %base;\n" body                                                         \
    "add.u32 %index, %index, %step; setp.ge.u32 %last, %index, %step; @%last bra $" name "_next;\n"                                        \
    "$" name "_end:\n" after "ret;\n"                                                                                                      \
    "}\n"

#define SCALIDE_PTX_F8_TO_HALF(format)                                                                                                     \
    "ld.global.u8 %byte, [%from]; cvt.rn.f16x2." format "x2 %pair, %byte; mov.b32 {%half, %other}, %pair;\n"

#define SCALIDE_PTX_FROM_F8(name, format)                                                                                                  \
    SCALIDE_PTX_LOOP("scalide_" name "_to_f16", "1", "2", "", SCALIDE_PTX_F8_TO_HALF(format) "st.global.u16 [%to], %half;\n", "")          \
    SCALIDE_PTX_LOOP("scalide_" name "_to_bf16", "1", "2", "",                                                                             \
                     SCALIDE_PTX_F8_TO_HALF(format) "cvt.f32.f16 %value, %half; mov.b32 %word, %value; shr.u32 %word, %word, 16;\n"        \
                                                    "cvt.u16.u32 %half, %word; st.global.u16 [%to], %half;\n",                             \
                     "")

// After the loop, each thread adds its largest magnitude to the one in memory. As unsigned integers, the bits of a NaN are the largest.
#define SCALIDE_PTX_NARROW(name, to_bytes, store)                                                                                          \
    SCALIDE_PTX_LOOP("scalide_f32_to_" name, "4", to_bytes,                                                                                \
                     "mov.u32 %amax, 0; mov.b32 %zero, %amax; ld.param.u64 %pointer, [factor]; setp.ne.u64 %has_factor, %pointer, 0;\n"    \
                     "@%has_factor ld.global.f32 %factor, [%pointer];\n"                                                                   \
                     "ld.param.u64 %pointer, [amax]; setp.ne.u64 %has_amax, %pointer, 0;\n",                                               \
                     "ld.global.f32 %value, [%from]; mov.b32 %word, %value; and.b32 %word, %word, 0x7fffffff;\n"                           \
                     "max.u32 %amax, %amax, %word; @%has_factor mul.rn.f32 %value, %value, %factor;\n" store,                              \
                     "@%has_amax red.global.max.u32 [%pointer], %amax;\n")

#define SCALIDE_PTX_TO_F8(format)                                                                                                          \
    "cvt.rn.satfinite." format "x2.f32 %half, %zero, %value; cvt.u32.u16 %word, %half; st.global.u8 [%to], %word;\n"

// The instructions for f8 need PTX 8.1 and sm_89. f8 operands of cuBLASLt need sm_89 too.
const char *const ptx = ".version 8.1\n.target sm_89\n.address_size 64\n" SCALIDE_PTX_FROM_F8("f8_e4m3fn", "e4m3")
    SCALIDE_PTX_FROM_F8("f8_e5m2", "e5m2") SCALIDE_PTX_LOOP(
        "scalide_f16_to_f32", "2", "4", "", "ld.global.u16 %half, [%from]; cvt.f32.f16 %value, %half; st.global.f32 [%to], %value;\n", "")
        SCALIDE_PTX_LOOP("scalide_bf16_to_f32", "2", "4", "",
                         "ld.global.u16 %half, [%from]; cvt.u32.u16 %word, %half; shl.b32 %word, %word, 16; st.global.u32 [%to], %word;\n",
                         "") SCALIDE_PTX_NARROW("f16", "2", "cvt.rn.f16.f32 %half, %value; st.global.u16 [%to], %half;\n")
            SCALIDE_PTX_NARROW("bf16", "2", "cvt.rn.bf16.f32 %half, %value; st.global.u16 [%to], %half;\n")
                SCALIDE_PTX_NARROW("f8_e4m3fn", "1", SCALIDE_PTX_TO_F8("e4m3"))
                    SCALIDE_PTX_NARROW("f8_e5m2", "1", SCALIDE_PTX_TO_F8("e5m2")) ".visible .entry scalide_clear(.param .u64 to)\n"
                                                                                  "{\n"
                                                                                  ".reg .b64 %to;\n"
                                                                                  "ld.param.u64 %to, [to]; st.global.u32 [%to], 0; ret;\n"
                                                                                  "}\n";

} // namespace

const char *const clear_kernel = "scalide_clear";

const char *source_of_convert_kernels() { return ptx; }

const char *widening_kernel(int32_t from, int32_t to) {
    switch (from) {
    case SCALIDE_F8_E4M3FN: return to == SCALIDE_F16 ? "scalide_f8_e4m3fn_to_f16" : "scalide_f8_e4m3fn_to_bf16";
    case SCALIDE_F8_E5M2: return to == SCALIDE_F16 ? "scalide_f8_e5m2_to_f16" : "scalide_f8_e5m2_to_bf16";
    case SCALIDE_F16: return "scalide_f16_to_f32";
    default: return "scalide_bf16_to_f32";
    }
}

const char *narrowing_kernel(int32_t to) {
    switch (to) {
    case SCALIDE_F8_E4M3FN: return "scalide_f32_to_f8_e4m3fn";
    case SCALIDE_F8_E5M2: return "scalide_f32_to_f8_e5m2";
    case SCALIDE_F16: return "scalide_f32_to_f16";
    default: return "scalide_f32_to_bf16";
    }
}

} // namespace scalide

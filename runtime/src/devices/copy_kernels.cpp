#include "devices/copy_kernels.h"
#include "scalide/scalide.h"

namespace scalide {

namespace {

// The index in the last axis is what the other axes leave, so an array of rank 1 needs no division.
#define SCALIDE_PTX_AXIS(name, axis, next)                                                                                                 \
    "setp.eq.u32 %last, %rank, " next "; mov.u32 %index, %rest; @%last bra $" name "_" axis "; ld.param.u32 %extent, [e" axis "];\n"       \
    "div.u32 %quotient, %rest, %extent; mul.lo.u32 %index, %quotient, %extent; sub.u32 %index, %rest, %index; mov.u32 %rest, %quotient;\n" \
    "$" name "_" axis ": cvt.u64.u32 %wide, %index;\n"                                                                                     \
    "ld.param.u64 %stride, [f" axis "]; mad.lo.s64 %from, %wide, %stride, %from;\n"                                                        \
    "ld.param.u64 %stride, [t" axis "]; mad.lo.s64 %to, %wide, %stride, %to; @%last bra $" name "_copy;\n"

#define SCALIDE_PTX_KERNEL(name, type, bytes, value)                                                                                       \
    ".visible .entry " name "(.param .u64 from, .param .u64 to, .param .u32 count, .param .u32 rank,\n"                                    \
    ".param .u32 e0, .param .u32 e1, .param .u32 e2, .param .u32 e3, .param .u32 e4, .param .u32 e5, .param .u32 e6, .param .u32 e7,\n"    \
    ".param .u64 f0, .param .u64 f1, .param .u64 f2, .param .u64 f3, .param .u64 f4, .param .u64 f5, .param .u64 f6, .param .u64 f7,\n"    \
    ".param .u64 t0, .param .u64 t1, .param .u64 t2, .param .u64 t3, .param .u64 t4, .param .u64 t5, .param .u64 t6, .param .u64 t7)\n"    \
    "{\n"                                                                                                                                  \
    ".reg .pred %last;\n"                                                                                                                  \
    ".reg .b32 %block, %threads, %rest, %rank, %index, %extent, %quotient, %word;\n"                                                       \
    ".reg .b64 %from, %to, %wide, %stride, %base, %long;\n"                                                                                \
    "mov.u32 %block, %ctaid.x; mov.u32 %threads, %ntid.x; mov.u32 %rest, %tid.x; mad.lo.u32 %rest, %block, %threads, %rest;\n"             \
    "ld.param.u32 %index, [count]; setp.ge.u32 %last, %rest, %index; @%last ret;\n"                                                        \
    "ld.param.u32 %rank, [rank]; mov.u64 %from, 0; mov.u64 %to, 0;\n" SCALIDE_PTX_AXIS(name, "0", "1") SCALIDE_PTX_AXIS(name, "1", "2")    \
        SCALIDE_PTX_AXIS(name, "2", "3") SCALIDE_PTX_AXIS(name, "3", "4") SCALIDE_PTX_AXIS(name, "4", "5")                                 \
            SCALIDE_PTX_AXIS(name, "5", "6") SCALIDE_PTX_AXIS(name, "6", "7")                                                              \
                SCALIDE_PTX_AXIS(name, "7", "8") "$" name "_copy: ld.param.u64 %base, [from]; mad.lo.s64 %from, %from, " bytes             \
                                                 ", %base;\n"                                                                              \
                                                 "ld.param.u64 %base, [to]; mad.lo.s64 %to, %to, " bytes ", %base;\n"                      \
                                                 "ld.global." type " " value ", [%from]; st.global." type " [%to], " value "; ret;\n"      \
                                                 "}\n"

// The first PTX version and compute capability that every driver of the runtime's functions knows.
const char *const ptx = ".version 7.4\n.target sm_50\n.address_size 64\n" SCALIDE_PTX_KERNEL("scalide_copy_1", "u8", "1", "%word")
    SCALIDE_PTX_KERNEL("scalide_copy_2", "u16", "2", "%word") SCALIDE_PTX_KERNEL("scalide_copy_4", "u32", "4", "%word")
        SCALIDE_PTX_KERNEL("scalide_copy_8", "u64", "8", "%long");

// Each kernel has the argument for local memory, because the driver sets one for Halide's kernels.
const char *const opencl = R"(
#define SCALIDE_COPY(name, type)                                                                                                          \
    __kernel void name(__global const type *from, __global type *to, uint count, uint rank, uint e0, uint e1, uint e2, uint e3, uint e4,  \
                       uint e5, uint e6, uint e7, long f0, long f1, long f2, long f3, long f4, long f5, long f6, long f7, long t0,        \
                       long t1, long t2, long t3, long t4, long t5, long t6, long t7, __local int *unused) {                             \
        const uint extent[8] = {e0, e1, e2, e3, e4, e5, e6, e7};                                                                         \
        const long f[8] = {f0, f1, f2, f3, f4, f5, f6, f7}, t[8] = {t0, t1, t2, t3, t4, t5, t6, t7};                                     \
        uint rest = get_global_id(0);                                                                                                    \
        long i = 0, k = 0;                                                                                                               \
        if (rest >= count) return;                                                                                                       \
        for (uint axis = 0; axis < rank; ++axis) {                                                                                       \
            const uint index = axis + 1 == rank ? rest : rest % extent[axis];                                                            \
            i += index * f[axis];                                                                                                        \
            k += index * t[axis];                                                                                                        \
            rest /= extent[axis];                                                                                                        \
        }                                                                                                                                \
        to[k] = from[i];                                                                                                                 \
    }
SCALIDE_COPY(scalide_copy_1, uchar)
SCALIDE_COPY(scalide_copy_2, ushort)
SCALIDE_COPY(scalide_copy_4, uint)
SCALIDE_COPY(scalide_copy_8, ulong)
)";

} // namespace

const char *source_of_copy_kernels(int32_t kind) { return kind == SCALIDE_CUDA ? ptx : opencl; }

const char *copy_kernel_for(int64_t element_bytes) {
    switch (element_bytes) {
    case 1: return "scalide_copy_1";
    case 2: return "scalide_copy_2";
    case 4: return "scalide_copy_4";
    default: return "scalide_copy_8";
    }
}

} // namespace scalide

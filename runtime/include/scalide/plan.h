/* The data of a generated program: what `scalide build` writes as C source and scalide_bind reads. Applications need only
 * scalide.h. All tables are constant; extents are polynomials over the program's symbols. Shapes are row-major, outermost axis
 * first, as in the program's text; the runtime reverses them for Halide. */
#ifndef SCALIDE_PLAN_H
#define SCALIDE_PLAN_H

#include "scalide/scalide.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Changes with every change of this file or of the kernel calling convention. */
#define SCALIDE_PLAN_VERSION 11u

#define SCALIDE_TERM_SYMBOLS 4

/* coefficient * symbol[0] * symbol[1] * ...; -1 = no further factor. */
typedef struct {
    int64_t coefficient;
    int32_t symbol[SCALIDE_TERM_SYMBOLS];
} scalide_term;

/* The sum of its terms; no terms = 0. */
typedef struct {
    const scalide_term *terms;
    int32_t count;
} scalide_extent;

/* A symbol's value v: minimum <= v <= maximum and v is a multiple of `multiple`. Each symbol must be found in the shape of some
 * input or inout as an extent of one term with this symbol alone (`b`, `4*b`). */
typedef struct {
    const char *name;
    int64_t minimum, maximum, multiple;
} scalide_symbol;

/* What an operator asks of symbols that ranges do not say: `surplus` must not be negative. */
typedef struct {
    const char *name; /* of the operator and its field: dynamic_update_slice.update */
    const char *rule; /* in words: n must be at least s */
    const scalide_extent *surplus;
} scalide_requirement;

typedef struct {
    const char *name;
    int32_t role;         /* scalide_role */
    int32_t data_buffer;  /* dtype and shape of the argument are those of this buffer */
    int32_t scale_buffer; /* f32, rank 0; -1 = a plain argument */
    int64_t initial;      /* SCALIDE_STATE: each element before the first run; its extents are numbers */
} scalide_argument;

typedef enum {
    SCALIDE_STORAGE_DATA = 0,     /* data of argument `index` */
    SCALIDE_STORAGE_SCALE = 1,    /* scale of argument `index` */
    SCALIDE_STORAGE_ARENA = 2,    /* intermediate, alive from first_step to last_step, both included; 64-byte aligned */
    SCALIDE_STORAGE_SCALAR = 3,   /* rank 0, slot `index` of the scalar table; never reused, readable after the run */
    SCALIDE_STORAGE_CONSTANT = 4, /* `constant` holds the elements; align it as an arena buffer */
    SCALIDE_STORAGE_SIZE = 5      /* rank 0, f32, f64 or i32: *size evaluated at bind */
} scalide_storage;

typedef struct {
    const char *name; /* unique in the program */
    int32_t dtype, rank;
    const scalide_extent *shape;
    int32_t storage;               /* scalide_storage */
    int32_t index;                 /* argument or slot, by storage; else -1 */
    int32_t first_step, last_step; /* all buffers: the first step that writes it (-1: none) and the last that touches it */
    const void *constant;          /* SCALIDE_STORAGE_CONSTANT only */
    const scalide_extent *size;    /* SCALIDE_STORAGE_SIZE only */
    int32_t part;                  /* scalide_part: what of `tensor` it holds */
    const char *tensor;            /* of the source program; NULL: itself */
} scalide_buffer;

typedef enum {
    SCALIDE_OPERAND_BUFFER = 0, /* a halide_buffer_t over buffer `index`, seen by the kernel with `rank` and `shape` (merged or dropped
                                   axes; never more elements than the buffer has) */
    SCALIDE_OPERAND_SCALAR = 1, /* a pointer to the value of the rank-0 buffer `index`: a scalar parameter of the buffer's type */
    SCALIDE_OPERAND_SYMBOL = 2  /* a pointer to the value of symbol `index` as int32_t */
} scalide_operand_kind;

/* One argument of a kernel, in the order of Halide's argument list behind the user context. */
typedef struct {
    int32_t kind;  /* scalide_operand_kind */
    int32_t index; /* buffer or symbol */
    int32_t rank;  /* SCALIDE_OPERAND_BUFFER only, as is shape; 0 and NULL otherwise */
    const scalide_extent *shape;
} scalide_operand;

/* Halide's `<kernel>_argv` entry point, built with the target features no_runtime-no_asserts-no_bounds_query-user_context:
 * args[0] points to a pointer that is the user context, args[1 + i] is operand i. Returns 0, or Halide's error code. A device's kernel is
 * called at bind, when the runtime writes down what it launches. */
typedef int (*scalide_kernel)(void **args);

/* How the scales of a product's operand lie in memory, of `rows` rows and k elements a row. A scale's block is of one row, or of 128. */
typedef enum {
    SCALIDE_SCALES_NONE = 0,
    SCALIDE_SCALES_OUTER_VEC = 1,  /* f32 [rows] */
    SCALIDE_SCALES_VEC128 = 2,     /* f32 [k / 128, rows] */
    SCALIDE_SCALES_BLK128X128 = 3, /* f32 [rows / 128, k / 128], the last extent filled up to a multiple of 4 */
    SCALIDE_SCALES_VEC32_UE8M0 = 4 /* e8m0 of rows and k / 32, both filled up to tiles of 128 x 4, tile after tile along k, in a tile scale
                                      (row, k) at row % 32 * 16 + row / 32 * 4 + k */
} scalide_scales;

/* A product of matrices of dense arrays, in f32: t[batch, m, n] = factor * sum over k of lhs[batch, m, k] * rhs[batch, n, k], each times
 * its scale where there are scales, + addend_factor * addend[batch, m, n] + bias[n]; result = result_factor * t, amax = the largest |t|.
 * Buffers; -1: a factor of 1, nothing that is added, no amax. Factors and amax are f32 of rank 0; only an f8 result has result_factor and
 * amax. */
typedef struct {
    int32_t lhs, rhs, result;
    int32_t lhs_scales, rhs_scales;
    int32_t lhs_scale_layout, rhs_scale_layout; /* scalide_scales */
    int32_t factor, bias, addend, addend_factor, result_factor, amax;
    int32_t fast_accumulation;                  /* 1: sums of f8 products may have 14 bits */
    int32_t tf32;                               /* 1: f32 operands may be rounded to 11 bits */
    int32_t lhs_k_contiguous, rhs_k_contiguous; /* 1: rows along k; 0: k rows of m (or n) elements */
    const scalide_extent *extents;              /* batch, m, n, k; elements from row to row and from matrix to matrix of lhs, then of rhs */
} scalide_matmul;
#define SCALIDE_MATMUL_EXTENTS 8

typedef struct {
    const char *name;
    scalide_kernel kernel;
    const scalide_operand *operands;
    int32_t operand_count;
    const scalide_matmul *matmul; /* the same as a call of cuBLASLt, which takes the kernel's place where it can; NULL: a kernel only */
} scalide_step;

/* A program as it was compiled for one card: cuBLASLt multiplies otherwise there. Its arguments and symbols are those of the program. */
typedef struct {
    int32_t capability;                    /* of CUDA: 90 for sm_90 */
    const struct scalide_program *program; /* NULL: the program itself */
} scalide_variant;

struct scalide_program {
    uint32_t plan_version; /* SCALIDE_PLAN_VERSION of the generator */
    const char *name;
    int32_t device;       /* scalide_device */
    const char *target;   /* Halide's target string; bind asks the CPU for its features */
    const char *numerics; /* the policy, as text */
    const char *hash;     /* of the program's text and all that went into its kernels */
    int32_t symbol_count, argument_count, buffer_count, step_count, scalar_count;
    const scalide_symbol *symbols;
    const scalide_argument *arguments;
    const scalide_buffer *buffers;
    const scalide_step *steps;
    scalide_extent scratch; /* bytes per thread that the kernels allocate at most; no terms = not known, the first run finds out */
    int32_t variant_count;
    const scalide_variant *variants; /* bind takes that of the largest capability of the card's generation (its tens) that is not above the
                                        card's; the program itself where there is none */
    int32_t requirement_count;
    const scalide_requirement *requirements;
};

#ifdef __cplusplus
}
#endif
#endif

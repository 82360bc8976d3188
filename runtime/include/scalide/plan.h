/* The data of a generated program (the plan). `scalide build` writes it as C source, and scalide_bind reads it. Applications do not need
 * this header: they include scalide.h. All tables are constant. Extents are polynomials of the symbols of the program. Shapes are
 * row-major: the outermost axis comes first, as in the text of the program. */
#ifndef SCALIDE_PLAN_H
#define SCALIDE_PLAN_H

#include "scalide/scalide.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this file and of the calling convention of kernels. The runtime rejects programs with another version. */
#define SCALIDE_PLAN_VERSION 18u

/* The maximum number of symbols in a term. */
#define SCALIDE_TERM_SYMBOLS 4

/* The product coefficient * symbol[0] * symbol[1] * ... The entries of `symbol` are indices of symbols; -1 ends the list. */
typedef struct {
    int64_t coefficient;
    int32_t symbol[SCALIDE_TERM_SYMBOLS];
} scalide_term;

/* An extent: the sum of its terms. Without terms it is 0. */
typedef struct {
    const scalide_term *terms;
    int32_t count;
} scalide_extent;

/* Where a symbol gets its value. */
typedef enum {
    SCALIDE_FROM_ARGUMENTS = 0, /* at least one input or inout must have an extent that is one term with only this symbol, such as `b` or
                                   `4*b`: scalide_bind computes the value from it */
    SCALIDE_RANKS = 1,          /* the number of ranks of a group, which has the name of the symbol */
    SCALIDE_RANK = 2,           /* the number of this rank in its group, from 0 */
    SCALIDE_CHUNK = 3           /* the elements of an array for each rank of its group: `divided` / ranks, rounded up */
} scalide_symbol_source;

/* A symbol. Its value v satisfies minimum <= v <= maximum, and v is a multiple of `multiple`. */
typedef struct {
    const char *name;
    int64_t minimum, maximum, multiple;
    int32_t source;                /* scalide_symbol_source */
    int32_t group;                 /* SCALIDE_RANK, SCALIDE_CHUNK: the symbol of the group's number of ranks; otherwise -1 */
    const scalide_extent *divided; /* SCALIDE_CHUNK: an extent without symbols of this source; otherwise NULL */
} scalide_symbol;

/* A condition on symbols that an operator adds: `surplus` must not be negative. */
typedef struct {
    const char *name; /* operator and field, such as dynamic_update_slice.update */
    const char *rule; /* the condition as text, such as "n must be at least s" */
    const scalide_extent *surplus;
} scalide_requirement;

/* An argument of the program. */
typedef struct {
    const char *name;
    int32_t role;         /* scalide_role */
    int32_t data_buffer;  /* index of the buffer that holds the data; it has the dtype and shape of the argument */
    int32_t scale_buffer; /* index of the scalar f32 buffer that holds the scale; -1: a plain argument */
    int64_t initial;      /* SCALIDE_STATE: value of each element before the first run. The extents of state are numbers */
} scalide_argument;

/* Where a buffer is stored. */
typedef enum {
    SCALIDE_STORAGE_DATA = 0,    /* in the data of argument `index` */
    SCALIDE_STORAGE_SCALE = 1,   /* in the scale of argument `index` */
    SCALIDE_STORAGE_ARENA = 2,   /* in the arena, aligned to 64 bytes, used from step first_step to step last_step (inclusive) */
    SCALIDE_STORAGE_SCALAR = 3,  /* a scalar in slot `index` of the scalar table. Slots are not reused, so it is readable after the run */
    SCALIDE_STORAGE_PREPARED = 4 /* in the memory of scalide_constants: output `index` of the prepare program */
} scalide_storage;

/* A buffer: an array that kernels read or write. */
typedef struct {
    const char *name; /* unique in the program */
    int32_t dtype, rank;
    const scalide_extent *shape;
    int32_t storage;               /* scalide_storage */
    int32_t index;                 /* of the argument or the slot, see scalide_storage; otherwise -1 */
    int32_t first_step, last_step; /* the first step that writes the buffer (-1: none) and the last step that uses it */
    int32_t part;                  /* scalide_part: the component of `tensor` that the buffer holds */
    const char *tensor;            /* name of the tensor in the source program; NULL: the same as `name` */
    const char *location;          /* where the source program computes the tensor, such as "net.scl:4"; NULL: not known */
} scalide_buffer;

/* The kinds of arguments of a kernel. */
typedef enum {
    SCALIDE_OPERAND_BUFFER = 0, /* a halide_buffer_t for buffer `index`. The kernel sees `rank` and `shape`: axes may be merged or left out,
                                   but there are never more elements than in the buffer */
    SCALIDE_OPERAND_SYMBOL = 1  /* a pointer to the value of symbol `index` as int32_t */
} scalide_operand_kind;

/* One argument of a kernel. The order is the order of Halide's arguments after the user context. */
typedef struct {
    int32_t kind;  /* scalide_operand_kind */
    int32_t index; /* buffer or symbol */
    int32_t rank;  /* rank and shape: only for SCALIDE_OPERAND_BUFFER; otherwise 0 and NULL */
    const scalide_extent *shape;
    int32_t strided; /* 1: the kernel reads the strides of all axes but the innermost from the halide_buffer_t. 0: it takes the elements as
                        dense and row-major. In both cases the innermost axis is contiguous */
} scalide_operand;

/* Halide's entry point `<kernel>_argv`. Its target features are no_runtime, no_asserts, no_bounds_query and user_context.
 * args[0] points to the pointer of the user context, and args[1 + i] is operand i. The kernel returns 0 or an error code of Halide.
 * For a device, scalide_bind calls the kernel once and records what it launches. */
typedef int (*scalide_kernel)(void **args);

/* How the scales of a matmul operand are stored. The operand has `rows` rows with k elements each. A scale belongs to a block of one row,
 * or of 128 rows. */
typedef enum {
    SCALIDE_SCALES_NONE = 0,
    SCALIDE_SCALES_OUTER_VEC = 1,  /* f32 [rows] */
    SCALIDE_SCALES_VEC128 = 2,     /* f32 [k / 128, rows] */
    SCALIDE_SCALES_BLK128X128 = 3, /* f32 [rows / 128, k / 128], with the last extent padded to a multiple of 4 */
    SCALIDE_SCALES_VEC32_UE8M0 = 4 /* e8m0 scales for rows and k / 32, both padded to tiles of 128 x 4. Tiles follow each other along k. In
                                      a tile, scale (row, k) is at row % 32 * 16 + row / 32 * 4 + k */
} scalide_scales;

/* A matmul of dense arrays, computed in f32:
 *   t[batch, m, n] = factor * sum over k of (lhs[batch, m, k] * rhs[batch, n, k]) + addend_factor * addend[batch, m, n] + bias[n]
 *   result = result_factor * t
 *   amax = the largest |t|
 * If an operand has scales, each of its elements is multiplied by its scale.
 * The members are indices of buffers. -1 means: a factor of 1, no addend, no bias, or no amax. Factors and amax are f32 scalars. Only an f8
 * result has result_factor and amax. */
typedef struct {
    int32_t lhs, rhs, result;
    int32_t lhs_scales, rhs_scales;
    int32_t lhs_scale_layout, rhs_scale_layout; /* scalide_scales */
    int32_t factor, bias, addend, addend_factor, result_factor, amax;
    int32_t fast_accumulation;                  /* 1: the sums of an f8 matmul may have only 14 bits */
    int32_t tf32;                               /* 1: f32 operands may be rounded to 11 significant bits, to nearest */
    int32_t lhs_k_contiguous, rhs_k_contiguous; /* 1: k is the contiguous axis; 0: m (or n) is */
    const scalide_extent *extents;              /* batch, m, n, k; then for lhs and for rhs the distance of rows and the distance of
                                                   matrices, in elements */
} scalide_matmul;
/* The number of `extents` of a scalide_matmul. */
#define SCALIDE_MATMUL_EXTENTS 8

/* How ranks exchange arrays. All ranks of the group call it with equal kinds, dtypes and numbers of elements. */
typedef enum {
    SCALIDE_EXCHANGE = 0, /* `from` has n elements, `to` has ranks * c. Chunk i of `from`, its elements i * c to (i + 1) * c, becomes chunk
                             `rank` of `to` of rank i. Elements beyond n are 0 */
    SCALIDE_COLLECT = 1   /* `from` has c elements, `to` has n. Element i * c + j of `to`, on all ranks, is element j of `from` of rank i.
                             Elements from n on are left out; n may be less than ranks * c */
} scalide_collective_kind;

/* An array that a collective moves. Both buffers have the same dtype, are dense, and are not the same. */
typedef struct {
    int32_t from, to;
} scalide_moved;

/* A step in which ranks exchange arrays. The bytes of all arrays are one message for each pair of ranks. */
typedef struct {
    int32_t kind;  /* scalide_collective_kind */
    int32_t group; /* the symbol of the group's number of ranks */
    int32_t count;
    const scalide_moved *arrays;
    const char *location; /* the line of the first operator in the source program, such as "net.scl:4"; NULL: not known */
} scalide_collective;

/* One step of a run: one kernel, or one exchange between ranks. */
typedef struct {
    const char *name;
    scalide_kernel kernel;           /* NULL: the step is a collective */
    const scalide_operand *operands; /* of a collective: none */
    int32_t operand_count;
    const scalide_matmul *matmul; /* the same computation for cuBLASLt, which replaces the kernel if it can; NULL: only the kernel */
    const scalide_collective *collective; /* NULL: the step is a kernel */
} scalide_step;

/* Another form of the program for some machines or some bindings. It has the same arguments and symbols. There are forms for one CUDA
 * compute capability, because cuBLASLt supports different matmuls there, forms for CPUs with more features, and forms for one value of a
 * symbol, because a matmul with one row or column is another loop nest. */
typedef struct {
    int32_t capability;                    /* compute capability: 90 for sm_90. 0: a form for CPUs or for values of symbols */
    const struct scalide_program *program; /* NULL: the main program */
    int32_t symbol_count;                  /* the form is for bindings in which each of these symbols has its value */
    int32_t symbol[SCALIDE_TERM_SYMBOLS];
    int64_t value[SCALIDE_TERM_SYMBOLS];
} scalide_variant;

/* The kinds of blocks. */
typedef enum {
    SCALIDE_BLOCK_LOOP = 0,  /* the number of steps is known before the first one */
    SCALIDE_BLOCK_WHILE = 1, /* a condition is computed before each step of the loop */
    SCALIDE_BLOCK_SWITCH = 2 /* one of several branches runs */
} scalide_block_kind;

/* An array that each step of a loop reads or writes as `buffer`: one element of the first axis of buffer `of`. `buffer` has storage ARENA,
 * or SCALAR if it has rank 0, with the dtype and the other extents of `of`. A step uses the memory of `of` itself if it is aligned for the
 * kernels, and the memory of `buffer` and a copy if not. */
typedef struct {
    int32_t buffer, of;
    int32_t is_written; /* 1: the steps write the row; 0: they only read it */
} scalide_row;

/* An array that a loop carries: a step reads it as `before` and writes it as `after`. The first step reads `init`, and after the last step
 * the array is in the memory of `after`, also if there are no steps. `before` has storage ARENA or SCALAR and is the spare memory with
 * which the steps alternate. All three have the same dtype and shape. If `before` is `after`, the steps update it in place. */
typedef struct {
    int32_t init, before, after;
} scalide_carry;

/* A block: steps that run several times (a loop), or of which only some run (a switch). Members without a meaning for the kind are 0, -1
 * or NULL. The memory of rows, carries and results must be in use over the whole block. */
typedef struct {
    const char *name;             /* operator and first result, such as "scan h" */
    const char *location;         /* its line in the source program, such as "net.scl:4"; NULL: not known */
    int32_t kind;                 /* scalide_block_kind */
    int32_t parent;               /* index of the block around it, which is smaller than its own; -1: none */
    int32_t first_step, end_step; /* its steps are first_step <= step < end_step, a part of the steps of the parent. There may be none */
    const scalide_extent *length; /* LOOP: the number of elements of the rows, and of the steps. NULL: no limit; there is a condition and
                                     there are no rows */
    int32_t condition;            /* a scalar buffer. LOOP: i32, there are min(max(condition, 0), length) steps; -1: `length` steps. The
                                     other elements of rows that steps write are 0. WHILE: bool; a step follows if it is true. SWITCH: i32,
                                     the index of the branch, clamped to [0, branch_count) */
    int32_t step;                 /* LOOP: i32 scalar buffer, with storage ARENA or SCALAR, that is set to the number of the element before
                                     each step; -1: none */
    int32_t reverse;              /* LOOP: 1: the first step has the last element that is used */
    int64_t most_steps;           /* WHILE: a run fails before step most_steps + 1; 0: no limit */
    int32_t test_end;             /* WHILE: steps before test_end compute the condition from `before`, the others are the body */
    const int32_t *branch_ends;   /* SWITCH: branch i ends before step branch_ends[i], where branch i + 1 begins. The last is end_step */
    int32_t branch_count;
    int32_t row_count, carry_count, result_count;
    const scalide_row *rows;
    const scalide_carry *carries;
    const int32_t *results; /* buffers that are complete at the end of the block: written rows' arrays, carries, and what branches
                               compute. A trace shows them then */
} scalide_block;

/* The numbers that a statistics program writes for a tensor, each into an output of its own. A magnitude is |x|. */
typedef enum {
    SCALIDE_PART_AMAX = 0,          /* f32: the largest finite magnitude of the tensor */
    SCALIDE_PART_SCALE = 1,         /* f32: the scale of its data */
    SCALIDE_PART_LARGE_SQUARES = 2, /* f32: sum of squares of the finite magnitudes from 2^20 on, times 2^-150 */
    SCALIDE_PART_SMALL_SQUARES = 3, /* f32: sum of squares of the smaller magnitudes, times 2^40. Without large squares: of all data,
                                       which is to be multiplied by the scale */
    SCALIDE_PART_ZEROS = 4,         /* i32: numbers that are not 0, and are rounded to 0 */
    SCALIDE_PART_SATURATED = 5,     /* i32: numbers beyond the largest number of the format, even after rounding */
    SCALIDE_PART_SUBNORMAL = 6,     /* i32: rounded numbers below the smallest normal number of the format, except 0 */
    SCALIDE_PART_NON_FINITE = 7,    /* i32: infinities and NaNs */
    SCALIDE_PART_FIRST = 8,         /* i32: the row-major index of the first infinity or NaN; 2^31 - 1: none */
    SCALIDE_PART_CATEGORIES = 9     /* i32[SCALIDE_STATISTIC_CATEGORIES]: see scalide_collected.first */
} scalide_statistic_part;
#define SCALIDE_STATISTIC_PARTS 10
#define SCALIDE_STATISTIC_BINS 32
#define SCALIDE_STATISTIC_CATEGORIES 38

/* A tensor of which a statistics program collects numbers. */
typedef struct {
    const char *tensor;              /* name in the source program */
    const char *use;                 /* "argument", "result", "dot_general.lhs", or "stored"; of a matmul its operator; may be "" */
    const char *op;                  /* the operator that computes the tensor; "" for an argument */
    const char *scope;               /* named scopes around the operator; may be "" */
    const char *location;            /* line in the source program, such as "net.scl:4"; NULL: not known */
    const char *policy;              /* the row that asks for the statistics, such as "mine.yaml:9"; NULL: an option of the build */
    const char *direction;           /* "forward", "backward", "update", or "-" for an argument */
    int32_t dtype;                   /* the dtype in which it is stored or rounded */
    int32_t rank;                    /* of the tensor */
    const scalide_extent *shape;     /* of the tensor */
    int64_t every;                   /* runs 0, every, 2 * every, ... collect */
    int32_t first_exponent, octaves; /* of the histogram */
    uint32_t collects;               /* bits of scalide_collects in statistics.h */
    /* The category of an element: 0 for a zero; 1 + its bin + the number of limits that its magnitude reaches; the last two for infinities
     * and NaNs of the tensor. By limit, the category of the smallest magnitude that: is not rounded to 0; becomes a normal number; is
     * beyond the format. -1: the limit is not counted by category. */
    int32_t first[3];
    int32_t makes_infinities_finite;           /* 1: infinities are saturated, too */
    int32_t argument[SCALIDE_STATISTIC_PARTS]; /* by scalide_statistic_part: argument of the statistics program; -1: not collected */
} scalide_collected;

/* The statistics of a program. `program` has the arguments of the program itself, then one output for each number. All other results have
 * the same bits. */
typedef struct {
    const struct scalide_program *program;
    int32_t count;
    const scalide_collected *tensors;
} scalide_statistics_plan;

/* A program. */
struct scalide_program {
    uint32_t plan_version; /* SCALIDE_PLAN_VERSION of the tool that built it */
    const char *name;
    int32_t device;       /* scalide_device */
    const char *target;   /* the target as Halide writes it; scalide_bind checks the features of the CPU */
    const char *numerics; /* the precision policy, as text */
    const char *hash;     /* hash of the text of the program and of everything that its kernels depend on */
    int32_t symbol_count, argument_count, buffer_count, step_count, scalar_count;
    const scalide_symbol *symbols;
    const scalide_argument *arguments;
    const scalide_buffer *buffers;
    const scalide_step *steps;
    int32_t variant_count;
    const scalide_variant *variants; /* scalide_bind first chooses among the variants without symbols whose target the CPU supports, and
                                        whose capability is not above the capability of the GPU and has the same tens. It takes the largest
                                        capability, and the last of equal ones. In the variants of this program it takes the first form
                                        whose symbols have their values. If there is none, it takes the program itself */
    int32_t requirement_count;
    const scalide_requirement *requirements;
    const struct scalide_program *prepare; /* computes the buffers with SCALIDE_STORAGE_PREPARED. Its inputs are the arguments with the role
                                              SCALIDE_CONSTANT, in order; its other arguments are outputs. NULL: no such buffers */
    uint64_t signature; /* hash of the names, roles, dtypes and shapes of the arguments, in order. The generated header has the same number,
                           see scalide_check_signature */
    int32_t require_libraries; /* 1: scalide_bind fails if a library refuses a matmul of a step */
    int32_t block_count;
    const scalide_block *blocks;               /* in the order of first_step; a block stands before the blocks in it */
    const scalide_statistics_plan *statistics; /* NULL: the build collects none. A statistics program has none */
};

#ifdef __cplusplus
}
#endif
#endif

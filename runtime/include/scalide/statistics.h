/* Statistics of the tensors of a compiled program: the largest magnitude, the root of the mean square, a histogram of magnitudes,
 * infinities and NaNs, and what rounding lost. The kernels that compute a tensor also compute its statistics.
 *
 * A program has statistics if its policy has rows `statistics`, or if it was built with `scalide build --statistics`. The library then has
 * two forms of the program, and most steps run the form without statistics, which costs nothing. All results have the same bits in both,
 * except for the mantissa of a NaN. A sum over several axes of concatenated arrays may be added in another order.
 *
 *     scalide_statistics *statistics;
 *     scalide_statistics_create(binding, arrays, count, NULL, &statistics);
 *     for (int64_t step = 0; step < steps; ++step) scalide_run_collecting(statistics, step);   // in place of scalide_run(binding)
 *     scalide_read_statistics(statistics, rows, scalide_statistics_count(program));
 *
 * A tensor in a loop counts as the stack of its arrays in all steps. Its scale is the largest scale of a step. Tensors in branches, and in
 * loops whose number of steps is not known before they run, have no statistics.
 *
 * A scalide_statistics is used as its binding is: by one thread at a time. */
#ifndef SCALIDE_STATISTICS_H
#define SCALIDE_STATISTICS_H

#include "scalide/scalide.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Statistics of a binding. */
typedef struct scalide_statistics scalide_statistics;

/* What is collected, as bits of scalide_statistic_info.collects. */
typedef enum {
    SCALIDE_COLLECTS_AMAX = 1,
    SCALIDE_COLLECTS_RMS = 2,
    SCALIDE_COLLECTS_ZEROS = 4,
    SCALIDE_COLLECTS_SATURATED = 8,
    SCALIDE_COLLECTS_SUBNORMAL = 16,
    SCALIDE_COLLECTS_NON_FINITE = 32,
    SCALIDE_COLLECTS_HISTOGRAM = 64
} scalide_collects;
/* The number of bins of a histogram. */
#define SCALIDE_HISTOGRAM_BINS 32

/* A description of a tensor with statistics. The strings live as long as the program. */
typedef struct {
    const char *tensor;    /* name in the source program: "params.w1" */
    const char *use;       /* "argument", "result", "dot_general.lhs", or "stored"; of a matmul its operator; may be "" */
    const char *op;        /* the operator that computes the tensor; "" for an argument */
    const char *scope;     /* named scopes around the operator: "block1/attention"; may be "" */
    const char *location;  /* line in the source program: "net.scl:4"; NULL: not known */
    const char *policy;    /* the row that asks for the statistics: "mine.yaml:9"; NULL: an option of the build */
    const char *direction; /* "forward", "backward", "update", or "-" for an argument */
    int32_t dtype;         /* the dtype in which the tensor is stored or rounded */
    int32_t rank;
    int64_t every; /* steps 0, every, 2 * every, ... collect */
    /* Of the histogram: bin 0 counts magnitudes below 2^first_exponent except 0; bin i counts from
     * 2^(first_exponent + (i - 1) * octaves) on; the last bin counts everything above, too. Infinities and NaNs count nowhere. */
    int32_t first_exponent, octaves;
    uint32_t collects; /* bits of scalide_collects */
} scalide_statistic_info;

/* The statistics of a tensor in one step. Numbers that are not collected are NaN or -1. */
typedef struct {
    int64_t step; /* the step; -1: no step has collected yet */
    int64_t elements;
    double amax;        /* the largest finite magnitude, in units of the tensor; 0 without elements */
    double scale;       /* of the stored data; NaN: there is none, or an array of scales */
    double rms;         /* the root of the mean square of the finite elements, in units of the tensor; 0 without elements. If non_finite is
                           not collected, an infinity or a NaN counts as an element with the value 0 */
    int64_t zeros;      /* numbers that are not 0 and are rounded to 0 */
    int64_t saturated;  /* numbers beyond the largest number of the format, even after rounding; infinities that become finite */
    int64_t subnormal;  /* rounded numbers below the smallest normal number of the format, except 0 */
    int64_t non_finite; /* infinities and NaNs of the tensor */
    int64_t first;      /* the row-major index of the first infinity or NaN; -1: there is none */
    /* Counts of floor(log2(|x / scale|)), before rounding. All -1: not collected */
    int32_t histogram[SCALIDE_HISTOGRAM_BINS];
} scalide_statistic;

/* Returns the number of tensors with statistics. 0: the program was built without. */
size_t scalide_statistics_count(const scalide_program *program);
/* Describes tensor `index`. Errors: SCALIDE_INVALID_ARGUMENT if there is no such tensor. */
scalide_status scalide_describe_statistic(const scalide_program *program, size_t index, scalide_statistic_info *info);

/* Prepares statistics of a binding. `arrays` has `count` descriptors as for scalide_bind; only the constants among them are read.
 * `constants` may be NULL: then they are prepared from `arrays`. Otherwise they come from scalide_statistics_prepare. The binding must live
 * longer than the statistics. Errors: as scalide_bind; SCALIDE_UNSUPPORTED if the program was built without statistics. Then *statistics is
 * NULL. */
scalide_status scalide_statistics_create(scalide_binding *binding, const scalide_array *arrays, size_t count, scalide_constants *constants,
                                         scalide_statistics **statistics);
/* Prepares the constants of the form with statistics, as scalide_prepare does for the other form. Errors: as scalide_prepare, and
 * SCALIDE_UNSUPPORTED. */
scalide_status scalide_statistics_prepare(scalide_context *context, const scalide_program *program, const scalide_array *arrays,
                                          size_t count, scalide_constants **constants);
/* Replaces the constants of the form with statistics, as scalide_set_constants does for the other form. `constants` come from
 * scalide_statistics_prepare. Errors: as scalide_set_constants. */
scalide_status scalide_statistics_set_constants(scalide_statistics *statistics, scalide_constants *constants);
/* Runs the binding once, as scalide_run does, with its newest arrays. If a tensor is due in this step, its statistics are collected.
 * Errors: as scalide_run. After a failure of the form with statistics, only that form cannot run again. */
scalide_status scalide_run_collecting(scalide_statistics *statistics, int64_t step);
/* Waits for the run, and writes the newest statistics of each tensor: `count` rows in the order of scalide_describe_statistic.
 * Errors: SCALIDE_INVALID_ARGUMENT (a wrong count), SCALIDE_DEVICE_FAILED. */
scalide_status scalide_read_statistics(scalide_statistics *statistics, scalide_statistic *rows, size_t count);
/* Returns the newest step that collected, or -1. */
int64_t scalide_statistics_step(const scalide_statistics *statistics);
/* Returns the program of the binding. */
const scalide_program *scalide_statistics_program(const scalide_statistics *statistics);
/* Frees the statistics. The binding stays. NULL is allowed. */
void scalide_statistics_destroy(scalide_statistics *statistics);

#ifdef __cplusplus
}
#endif
#endif

/* Scalide's runtime: runs the programs that `scalide build` generates. C99; no call aborts, prints or throws.
 *
 * A context owns threads and scratch memory, a binding ties a program to arrays. One context and its bindings belong to one thread at
 * a time; separate contexts are independent. Everything that can be wrong is found by scalide_bind; scalide_run checks nothing. */
#ifndef SCALIDE_SCALIDE_H
#define SCALIDE_SCALIDE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SCALIDE_MAX_RANK 8

/* Element types; the numbers never change. */
typedef enum {
    SCALIDE_F32 = 0,
    SCALIDE_F16 = 1,
    SCALIDE_BF16 = 2,
    SCALIDE_F8_E4M3FN = 3,
    SCALIDE_F8_E5M2 = 4,
    SCALIDE_F8_E4M3FNUZ = 5,
    SCALIDE_F8_E5M2FNUZ = 6,
    SCALIDE_F8_E8M0FNU = 7,
    SCALIDE_I32 = 8,
    SCALIDE_BOOL = 9,
    SCALIDE_F64 = 10, /* rank-0 intermediates only, never an argument */
    SCALIDE_I8 = 11,
    SCALIDE_U8 = 12,
    SCALIDE_I16 = 13,
    SCALIDE_U16 = 14,
    SCALIDE_U32 = 15
} scalide_dtype;
#define SCALIDE_DTYPE_COUNT 16

/* "f32", "f8_e4m3fn", ...; "?" for a number that is not a dtype. */
const char *scalide_dtype_name(int32_t dtype);
/* Bytes of one element; 0 for a number that is not a dtype. */
size_t scalide_dtype_size(int32_t dtype);

typedef enum {
    SCALIDE_OK = 0,
    SCALIDE_INVALID_ARGUMENT, /* the caller's arrays or pointers: scalide_message says which one and why */
    SCALIDE_INVALID_PROGRAM,  /* made for another runtime version, or its tables contradict each other */
    SCALIDE_UNSUPPORTED_CPU,  /* the program uses instructions that this machine lacks */
    SCALIDE_OUT_OF_MEMORY,
    SCALIDE_THREAD_FAILED, /* the system started no worker thread */
    SCALIDE_KERNEL_FAILED, /* a kernel reported an error during a run */
    SCALIDE_FILE_ERROR,    /* a file is missing, unreadable, unwritable or malformed */
    SCALIDE_STATUS_COUNT
} scalide_status;

/* A short description of a status, never NULL. */
const char *scalide_status_string(scalide_status status);

/* A dense row-major array in the caller's memory: stride in elements, the last axis contiguous. Strides of axes of extent 1, and all
 * strides of an array without elements, are not looked at. `data` has at least the alignment of an element (64 bytes
 * are faster), that of an inout argument with axes an alignment of 64 bytes. */
typedef struct {
    void *data;
    float *scale; /* a scaled array's value is data * scale; NULL = plain */
    int32_t dtype, rank;
    int64_t extent[SCALIDE_MAX_RANK], stride[SCALIDE_MAX_RANK];
} scalide_array;

/* The array descriptor of a dense buffer: fills in the row-major strides. `extent` may be NULL for rank 0. A rank outside
 * [0, SCALIDE_MAX_RANK] is kept and bind refuses it. */
scalide_array scalide_dense_array(void *data, float *scale, int32_t dtype, int32_t rank, const int64_t *extent);

typedef struct scalide_context scalide_context;
typedef struct scalide_program scalide_program; /* read-only data of a generated library: plan.h */
typedef struct scalide_binding scalide_binding;

typedef struct {
    size_t struct_size;     /* sizeof(scalide_options); later versions append fields, a smaller size means their defaults */
    int32_t threads;        /* including the caller; 0 = the CPUs that this process may use */
    uint64_t scratch_bytes; /* per thread, taken at once; kernels that need more grow it in their first run. 0 = 1 MiB */
} scalide_options;

/* `options` may be NULL: all defaults. SCALIDE_INVALID_ARGUMENT (threads outside [0, 1024]), SCALIDE_OUT_OF_MEMORY or
 * SCALIDE_THREAD_FAILED. */
scalide_status scalide_context_create(const scalide_options *options, scalide_context **context);
/* Waits for nothing: no run may be in progress. Destroy the bindings first. NULL is allowed. */
void scalide_context_destroy(scalide_context *context);
/* The last failure of this context in words ("digits_step.images: dtype must be f32, got f16. ..."); "" when nothing failed. */
const char *scalide_message(const scalide_context *context);
/* Threads that run kernels, including the caller. */
int32_t scalide_thread_count(const scalide_context *context);

/* Checks the arrays (in the order of the program's arguments) against the program, solves for its symbols, plans and allocates the
 * arena. The arrays' memory, not the descriptors, must outlive the binding. A message says what is wrong: SCALIDE_INVALID_ARGUMENT,
 * SCALIDE_INVALID_PROGRAM, SCALIDE_UNSUPPORTED_CPU or SCALIDE_OUT_OF_MEMORY; *binding is then NULL. */
scalide_status scalide_bind(scalide_context *context, const scalide_program *program, const scalide_array *arrays, size_t count,
                            scalide_binding **binding);
/* Puts another array of the same shape in the place of argument `index`; same checks, no allocation. On failure nothing changes. */
scalide_status scalide_set_argument(scalide_binding *binding, size_t index, const scalide_array *array);
/* Other arrays of the same shapes in the place of all `count` arguments: as scalide_set_argument, with every check made once. */
scalide_status scalide_set_arguments(scalide_binding *binding, const scalide_array *arrays, size_t count);
/* One run of all steps: no allocation (once the scratch is large enough), no checks. SCALIDE_KERNEL_FAILED or SCALIDE_OUT_OF_MEMORY is
 * sticky: later runs of this binding return it at once. */
scalide_status scalide_run(scalide_binding *binding);
/* Called after a step for each buffer that it was the first to write; `array.scale` is NULL. The memory is valid during the call. */
typedef void (*scalide_trace)(void *user, const char *buffer_name, const scalide_array *array);
/* As scalide_run, showing intermediate values (by their names in the plan, "h.data", "h.scale") as they are produced. */
scalide_status scalide_run_traced(scalide_binding *binding, scalide_trace trace, void *user);
void scalide_binding_destroy(scalide_binding *binding);

typedef enum { SCALIDE_INPUT = 0, SCALIDE_OUTPUT = 1, SCALIDE_INOUT = 2 } scalide_role;
typedef struct {
    const char *name;
    int32_t dtype, rank, role, scaled;
} scalide_argument_info;

const char *scalide_program_name(const scalide_program *program);
const char *scalide_program_target(const scalide_program *program);
/* The numerics (policy) that the program was built with, as text. */
const char *scalide_program_numerics(const scalide_program *program);
size_t scalide_argument_count(const scalide_program *program);
/* Returns SCALIDE_INVALID_ARGUMENT when there is no argument `index`. */
scalide_status scalide_describe_argument(const scalide_program *program, size_t index, scalide_argument_info *info);
/* The index of the argument of this name, or -1. */
int32_t scalide_find_argument(const scalide_program *program, const char *name);
/* Fills in dtype, rank, extents and strides of the outputs (role output) from the shapes of the other arrays, so that the caller can
 * allocate them before binding. Data pointers are not looked at. */
scalide_status scalide_shape_outputs(scalide_context *context, const scalide_program *program, scalide_array *arrays, size_t count);

/* Bytes of intermediate values that the binding holds. */
size_t scalide_arena_bytes(const scalide_binding *binding);
/* The value of a symbol ("b") or -1 when the program has none of this name. */
int64_t scalide_symbol_value(const scalide_binding *binding, const char *name);
/* The value that a rank-0 buffer of the plan ("loss", "w1.scale") holds after a run. f64, f32, integers and bool only. */
scalide_status scalide_read_scalar(const scalide_binding *binding, const char *buffer_name, double *value);

/* A program out of a shared library, which exports `const scalide_program *<name>_program(void)`. */
typedef struct scalide_library scalide_library;
scalide_status scalide_load(scalide_context *context, const char *path, scalide_library **library);
/* NULL (and a message in the context) when the library has no such program. */
const scalide_program *scalide_library_program(scalide_context *context, const scalide_library *library, const char *name);
/* Destroy the bindings of its programs first. NULL is allowed. */
void scalide_library_close(scalide_library *library);

#ifdef __cplusplus
}
#endif
#endif

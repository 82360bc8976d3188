/* Scalide's runtime: runs the programs that `scalide build` generates. C99; no call aborts, prints or throws.
 *
 * A context owns threads and scratch memory, or a device; a binding ties a program to arrays. One context and its bindings belong to one
 * thread at a time; separate contexts are independent. Everything that can be wrong is found by scalide_bind; scalide_run checks nothing.
 * NULL for a handle, a name or a place for a result is refused: SCALIDE_INVALID_ARGUMENT, 0 for a count, -1 for an index, a kind or a
 * value, NULL for a pointer. What destroys takes it and does nothing.
 *
 * A process may fork while no call is in progress. What the child then has of a context for the CPU works, on the thread that forked
 * alone, and may be destroyed; what it has of a device's context is neither run nor destroyed, as drivers do not outlive a fork. Signals
 * disturb nothing: the context's own threads get none.
 *
 * In the context of a device all arrays, their data and their scales, lie in its memory: scalide_allocate, scalide_copy_in and
 * scalide_copy_out, or the driver's own. These work on the CPU too, so that one source serves all targets.
 *
 * Programs compute in a float environment of their own: to nearest, with subnormal numbers, without traps, in every thread. So a run gives
 * the same bits whatever the caller has set, and the caller's modes and exception flags are as they were when a call returns. */
#ifndef SCALIDE_SCALIDE_H
#define SCALIDE_SCALIDE_H

#include "scalide/dtypes.h"
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SCALIDE_MAX_RANK 8
/* Elements of an array, 2^31 - 2^20: kernels count them in 32 bits, and round up to whole tasks. */
#define SCALIDE_MAX_ELEMENTS 2146435072

/* Element types: SCALIDE_F32, SCALIDE_F8_E4M3FN, ...; the rows of dtypes.h, with their numbers. */
#define SCALIDE_ENUMERATOR(id, name, text, number, ...) SCALIDE_##id = number,
typedef enum { SCALIDE_DTYPES(SCALIDE_ENUMERATOR) } scalide_dtype;
#undef SCALIDE_ENUMERATOR

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
    SCALIDE_NO_DEVICE,     /* no such device here, or no driver that is new enough */
    SCALIDE_WRONG_DEVICE,  /* the program is built for another device than the context's */
    SCALIDE_DEVICE_FAILED, /* the driver refused a call, or a kernel failed on the device */
    SCALIDE_UNSUPPORTED,   /* this device has no such thing */
    SCALIDE_STATUS_COUNT
} scalide_status;

/* A short description of a status, never NULL. */
const char *scalide_status_string(scalide_status status);

/* A dense row-major array in the caller's memory: stride in elements, the last axis contiguous. Strides of axes of extent 1, and all
 * strides of an array without elements, are not looked at. `data` has at least the alignment of an element (64 bytes
 * are faster), on a device, if it has axes, of 16 bytes; that of an inout argument with axes an alignment of 64 bytes. */
typedef struct {
    void *data;
    float *scale; /* a scaled array's value is data * scale, scale >= 0 (0 for zeros); NULL = plain */
    int32_t dtype, rank;
    int64_t extent[SCALIDE_MAX_RANK], stride[SCALIDE_MAX_RANK];
} scalide_array;

/* The array descriptor of a dense buffer: fills in the row-major strides. `extent` may be NULL for rank 0. A rank outside
 * [0, SCALIDE_MAX_RANK] is kept and bind refuses it. */
scalide_array scalide_dense_array(void *data, float *scale, int32_t dtype, int32_t rank, const int64_t *extent);

typedef struct scalide_context scalide_context;
typedef struct scalide_program scalide_program; /* read-only data of a generated library: plan.h */
typedef struct scalide_binding scalide_binding;

/* Where programs run: what they are built for (--target) and what contexts are created for. Drivers are loaded when the first context of
 * their kind is created: libcuda.so.1, libOpenCL.so.1. */
typedef enum { SCALIDE_CPU = 0, SCALIDE_CUDA = 1, SCALIDE_OPENCL = 2, SCALIDE_DEVICE_COUNT } scalide_device;
/* "cpu", "cuda", "opencl"; "?" for another number. */
const char *scalide_device_name(int32_t device);

typedef struct {
    size_t struct_size;     /* sizeof(scalide_options); later versions append fields, a smaller size means their defaults */
    int32_t threads;        /* including the caller; 0 = the CPUs that this process may use. Of a device: not looked at */
    uint64_t scratch_bytes; /* per thread, taken at once; kernels that need more grow it in their first run. 0 = 1 MiB */
    int32_t device;         /* scalide_device */
    int32_t device_index;   /* in the driver's order, from 0 */
    void *stream;           /* CUstream of that device's primary context, or cl_command_queue (in order); NULL = a new one */
    char *message;          /* a failed scalide_context_create leaves its words here; may be NULL */
    size_t message_size;
    const char *cache_folder; /* CUDA: keeps the choices of cuBLASLt's algorithms for later processes; NULL = nowhere */
    int32_t time_matmuls;     /* CUDA: 1 = bind times cuBLASLt's algorithms for a product, 0 = it takes the first that runs */
} scalide_options;

/* `options` may be NULL: all defaults. SCALIDE_INVALID_ARGUMENT (threads outside [0, 1024], no such kind of device, a stream of another
 * device), SCALIDE_OUT_OF_MEMORY, SCALIDE_THREAD_FAILED, SCALIDE_NO_DEVICE or SCALIDE_DEVICE_FAILED. */
scalide_status scalide_context_create(const scalide_options *options, scalide_context **context);
/* No call may be in progress in another thread: nothing waits for one. Destroy the bindings first. NULL is allowed. */
void scalide_context_destroy(scalide_context *context);
/* The last failure of this context in words ("digits_step.images: dtype must be f32, got f16. ..."); "" when nothing failed. */
const char *scalide_message(const scalide_context *context);
/* Threads that run kernels, including the caller; 1 for a device. */
int32_t scalide_thread_count(const scalide_context *context);
/* scalide_device of the context. */
int32_t scalide_context_device(const scalide_context *context);
/* What its driver calls the device ("NVIDIA H200"); "cpu" for the CPU. */
const char *scalide_context_device_name(const scalide_context *context);

/* Memory that kernels of this context read and write, aligned to at least 64 bytes: SCALIDE_OUT_OF_MEMORY. Release it before the context
 * is destroyed and after the bindings that use it. */
scalide_status scalide_allocate(scalide_context *context, size_t bytes, void **memory);
void scalide_release(scalide_context *context, void *memory);
/* Copies between the host's memory and the context's, after all runs before it, and waits until it is done: SCALIDE_DEVICE_FAILED. */
scalide_status scalide_copy_in(scalide_context *context, void *to, const void *from, size_t bytes);
scalide_status scalide_copy_out(scalide_context *context, void *to, const void *from, size_t bytes);
/* Waits until all runs and copies are done. SCALIDE_DEVICE_FAILED when one of them failed on the device. */
scalide_status scalide_synchronise(scalide_context *context);

/* Checks the arrays (in the order of the program's arguments) against the program, solves for its symbols, plans and allocates the
 * arena; loads the kernels to a device. The arrays' memory, not the descriptors, must outlive the binding. On the CPU the scales of inputs
 * and inouts are read: one that is NaN or negative is refused. A scale in a device's memory, and an argument that is an array of scales,
 * are not read. A message says what is wrong: SCALIDE_INVALID_ARGUMENT, SCALIDE_INVALID_PROGRAM, SCALIDE_UNSUPPORTED_CPU,
 * SCALIDE_WRONG_DEVICE, SCALIDE_DEVICE_FAILED or SCALIDE_OUT_OF_MEMORY; *binding is then NULL. */
scalide_status scalide_bind(scalide_context *context, const scalide_program *program, const scalide_array *arrays, size_t count,
                            scalide_binding **binding);
/* Puts another array of the same shape in the place of argument `index`; same checks, no allocation. On failure nothing changes. */
scalide_status scalide_set_argument(scalide_binding *binding, size_t index, const scalide_array *array);
/* Other arrays of the same shapes in the place of all `count` arguments: as scalide_set_argument, with every check made once. */
scalide_status scalide_set_arguments(scalide_binding *binding, const scalide_array *arrays, size_t count);
/* One run of all steps: no allocation (once the scratch is large enough), no checks. SCALIDE_KERNEL_FAILED, SCALIDE_OUT_OF_MEMORY or
 * SCALIDE_DEVICE_FAILED is sticky: later runs of this binding return it at once. On a device the steps are launched and not waited for:
 * scalide_synchronise, or the caller's stream. */
scalide_status scalide_run(scalide_binding *binding);
/* From now on a run of this binding is one launch of a graph of all steps (CUDA). SCALIDE_UNSUPPORTED where the device has no graphs:
 * runs stay as they are. SCALIDE_DEVICE_FAILED or SCALIDE_OUT_OF_MEMORY likewise. */
scalide_status scalide_capture(scalide_binding *binding);
/* What a buffer holds: an array, or the data or the scale of a scaled one (value = data * scale). */
typedef enum { SCALIDE_WHOLE = 0, SCALIDE_DATA = 1, SCALIDE_SCALE = 2 } scalide_part;
typedef struct {
    const char *name; /* unique in the plan: "h.data", "h.f16"; for people */
    /* Of the source program, "h": what this is a form of, rounded (`array.dtype` says to what), rescaled, or as it is. */
    const char *tensor;
    int32_t part; /* scalide_part: what of the tensor it is */
} scalide_traced;
/* Called after a step for each buffer that it was the first to write; `array.scale` is NULL. The memory is the host's and valid during
 * the call, which is in the float environment of programs. */
typedef void (*scalide_trace)(void *user, const scalide_traced *buffer, const scalide_array *array);
/* As scalide_run, showing intermediate values as they are produced. Operands that are
 * rounded while they are packed, and scales that several kernels compute, are stored in libraries that were built with --traceable alone.
 */
scalide_status scalide_run_traced(scalide_binding *binding, scalide_trace trace, void *user);
/* A result of a step that has an infinity or a NaN. */
typedef struct {
    const char *buffer; /* by its name in the plan ("h.data", "loss"); NULL = all results are finite */
    const char *kernel; /* that made it */
    size_t step;        /* of the run, as scalide_describe_step counts */
} scalide_non_finite;
/* As scalide_run; *first becomes the first result that is not finite. Arguments and constants are no results: a step that copies an
 * infinity out of them makes one. On a device each step is waited for and its results copied to the host. */
scalide_status scalide_run_checked(scalide_binding *binding, scalide_non_finite *first);
void scalide_binding_destroy(scalide_binding *binding);

/* SCALIDE_STATE is overwritten as SCALIDE_INOUT is. The policy of the program adds it, behind the program's own arguments: it is kept from
 * run to run, and saved, with the rest of the state. */
typedef enum { SCALIDE_INPUT = 0, SCALIDE_OUTPUT = 1, SCALIDE_INOUT = 2, SCALIDE_STATE = 3 } scalide_role;
typedef struct {
    const char *name;
    int32_t dtype, rank, role, scaled;
    int64_t initial; /* SCALIDE_STATE: each element before the first run */
} scalide_argument_info;

const char *scalide_program_name(const scalide_program *program);
const char *scalide_program_target(const scalide_program *program);
/* scalide_device: what the context must be for. */
int32_t scalide_program_device(const scalide_program *program);
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

/* Fills in dtype, rank, extents and strides of the policy's state (role SCALIDE_STATE), and writes what it is before the first run to the
 * memory of the context that `data` points to. NULL is left alone: a first call tells the sizes. Other arrays are not looked at.
 * SCALIDE_INVALID_ARGUMENT, SCALIDE_OUT_OF_MEMORY or SCALIDE_DEVICE_FAILED. */
scalide_status scalide_initial_state(scalide_context *context, const scalide_program *program, scalide_array *arrays, size_t count);

typedef struct {
    const char *name;    /* of the step's kernel */
    const char *library; /* that computes the step ("cublaslt"); NULL = the kernel */
    const char *reason;  /* why the kernel, where a library could be asked; else NULL */
} scalide_step_info;
/* Steps of a run. Bindings of one program on several cards may have different ones. 0 of NULL. */
size_t scalide_step_count(const scalide_binding *binding);
/* What computes a step of this binding. The texts live as long as the binding. SCALIDE_INVALID_ARGUMENT when there is no step `index`. */
scalide_status scalide_describe_step(const scalide_binding *binding, size_t index, scalide_step_info *info);
/* Bytes of intermediate values that the binding holds. */
size_t scalide_arena_bytes(const scalide_binding *binding);
/* The value of a symbol ("b") or -1 when the program has none of this name. */
int64_t scalide_symbol_value(const scalide_binding *binding, const char *name);
/* The value that a rank-0 buffer of the plan ("loss", "w1.scale") holds after a run, which is waited for. f64, f32, integers and bool
 * only. */
scalide_status scalide_read_scalar(const scalide_binding *binding, const char *buffer_name, double *value);

/* A program out of a shared library, which exports `const scalide_program *<name>_program(void)`: the program's name with `_` for each byte
 * that is no ASCII letter or digit, and before a digit at the start. */
typedef struct scalide_library scalide_library;
/* Loads what is in the file now: a rebuilt file of the same path is loaded beside the old library, which works on until it is closed;
 * debuggers show its name as /proc/<process>/fd/<number>. Replace a file that is loaded by another one, as `scalide build` does: writing
 * into it changes the code of the old library. SCALIDE_FILE_ERROR or SCALIDE_OUT_OF_MEMORY, with a message. */
scalide_status scalide_load(scalide_context *context, const char *path, scalide_library **library);
/* NULL (and a message in the context) when the library has no such program. */
const scalide_program *scalide_library_program(scalide_context *context, const scalide_library *library, const char *name);
/* Destroy the bindings of its programs first. NULL is allowed. */
void scalide_library_close(scalide_library *library);

#ifdef __cplusplus
}
#endif
#endif

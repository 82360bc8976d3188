/* The C runtime of Scalide. It runs the programs that `scalide build` generates. C99. No function aborts, prints or throws.
 *
 * How to use it:
 *   1. scalide_context_create makes a context. The context owns threads and scratch memory, or a device (GPU).
 *   2. scalide_bind checks your arrays against a program and returns a binding.
 *   3. scalide_run runs the program once. It makes no checks.
 *   4. scalide_binding_destroy and scalide_context_destroy, in any order.
 *
 * Errors. Most functions return a scalide_status. scalide_message describes the last failure of a context in words. Every function that
 * has a context or a binding and returns another status than SCALIDE_OK writes a message, except SCALIDE_BUSY and scalide_set_constants.
 * NULL for a handle, a name or a result pointer is an error. The function then returns SCALIDE_INVALID_ARGUMENT, 0 for a count, -1 for an
 * index or a value, or NULL for a pointer. All functions that destroy, release or close accept NULL and do nothing.
 *
 * Threads. Only one thread at a time may use a context and its bindings. Different contexts are independent. If a second thread calls a
 * function while the first one is in a function of the same context, the second call does nothing and returns SCALIDE_BUSY. The message of
 * the context then belongs to the first thread: take the words from scalide_status_string. A callback may call functions for the context
 * that calls it. Any thread may call these functions at any time:
 *   - scalide_set_constants, and functions that describe a program;
 *   - scalide_bind_like, for the binding that it reads;
 *   - on the CPU: scalide_allocate, scalide_release, scalide_copy_in, scalide_copy_out, scalide_synchronise, scalide_constants_destroy, and
 *     scalide_binding_destroy for a binding that does not run.
 * On a device, scalide_release, scalide_binding_destroy and scalide_constants_destroy wait until the other thread has left its function.
 *
 * Memory. The caller owns its arrays. The runtime stores pointers to them, so they must live as long as the binding.
 * In the context of a device, the data and the scales of all arrays must be in the memory of the device. Allocate it with scalide_allocate
 * and copy with scalide_copy_in and scalide_copy_out, or use the functions of the driver. These functions work on the CPU, too.
 * So the same source works for all targets.
 *
 * Float modes. Programs run in their own float environment: they round to nearest, keep subnormal numbers and do not trap. So a run gives
 * the same bits for any float modes of the caller. When a function returns, the caller has its own modes and exception flags again.
 *
 * Fork. A process may fork while no function of this header runs. In the child, a context for the CPU works with one thread, the thread
 * that called fork, and the child may destroy it. The child must neither use nor destroy a context for a device: drivers do not support
 * fork.
 *
 * Signals. The threads of a context block all signals, so the handlers of the application run in its own threads. */
#ifndef SCALIDE_SCALIDE_H
#define SCALIDE_SCALIDE_H

#include "scalide/dtypes.h"
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this interface: of the functions and structures of scalide.h and safetensors.h. It grows by 1 with each release that adds
 * or changes one of them. An application that was compiled with version N runs with a runtime of version N or later. Plans have a version
 * of their own: SCALIDE_PLAN_VERSION in plan.h. */
#define SCALIDE_INTERFACE_VERSION 1
/* Returns the SCALIDE_INTERFACE_VERSION of the runtime that is linked or loaded. Any thread may call it. */
int32_t scalide_interface_version(void);

/* The maximum number of axes of an array. */
#define SCALIDE_MAX_RANK 8
/* The maximum number of elements of an array: 2^31 - 2^20. Kernels count elements in 32 bits and round the count up. */
#define SCALIDE_MAX_ELEMENTS 2146435072

/* Element types: SCALIDE_F32, SCALIDE_F8_E4M3FN, ... dtypes.h lists them. */
#define SCALIDE_ENUMERATOR(id, name, text, number, ...) SCALIDE_##id = number,
typedef enum { SCALIDE_DTYPES(SCALIDE_ENUMERATOR) } scalide_dtype;
#undef SCALIDE_ENUMERATOR

/* Returns the name of a dtype, such as "f32" or "f8_e4m3fn". Returns "?" if the number is not a dtype. The string is static. */
const char *scalide_dtype_name(int32_t dtype);
/* Returns the size of one element in bytes. Returns 0 if the number is not a dtype. */
size_t scalide_dtype_size(int32_t dtype);

typedef enum {
    SCALIDE_OK = 0,
    SCALIDE_INVALID_ARGUMENT, /* an array or pointer of the caller is wrong; scalide_message says which one and why */
    SCALIDE_INVALID_PROGRAM,  /* the program was built for another version of the runtime, or its tables are inconsistent */
    SCALIDE_UNSUPPORTED_CPU,  /* the program uses instructions that this CPU does not have */
    SCALIDE_OUT_OF_MEMORY,
    SCALIDE_THREAD_FAILED,    /* the system could not start a worker thread */
    SCALIDE_KERNEL_FAILED,    /* a kernel reported an error during a run */
    SCALIDE_FILE_ERROR,       /* a file is missing, unreadable, unwritable or malformed */
    SCALIDE_NO_DEVICE,        /* the device does not exist, or its driver is missing or too old */
    SCALIDE_WRONG_DEVICE,     /* the program was built for another kind of device than the context has */
    SCALIDE_DEVICE_FAILED,    /* the driver reported an error, or a kernel failed on the device */
    SCALIDE_UNSUPPORTED,      /* the device, or the file, does not support this request */
    SCALIDE_BUSY,             /* another thread uses the context; there is no message */
    SCALIDE_INTERRUPTED,      /* scalide_interrupt or the poll of the context stopped a run in a loop */
    SCALIDE_STEP_LIMIT,       /* a `while` of the program did not end after its max_steps steps */
    SCALIDE_TRANSPORT_FAILED, /* ranks could not exchange arrays, or another rank has failed (groups.h) */
    SCALIDE_STATUS_COUNT
} scalide_status;

/* Returns a short description of a status. It is never NULL. The string is static. */
const char *scalide_status_string(scalide_status status);

/* Describes an array in the memory of the caller.
 *
 * `data` is the address of the first element. Strides count elements. The array is dense if its elements are row-major and without gaps.
 * Otherwise it is a view, such as a block of the rows and columns of a larger array, or every second element. The runtime ignores the
 * stride of an axis of extent 1, and all strides of an array without elements.
 *
 * Views. Strides may be negative. The strides of an input may also be 0. An array that a run writes must have an own place for each
 * element: each stride must be larger than everything that the smaller strides cover. Where the kernels of a program can read strides,
 * they use the view in place. Elsewhere each run copies the view to or from dense memory of the binding. An inout argument is copied in
 * both directions. scalide_binding_copied_bytes reports the copies, and so does the log. Elements between the elements of a view are never
 * written.
 *
 * Alignment of `data`: at least the size of one element; 64 bytes are faster. For a dense inout argument with axes, and for an output that
 * a loop updates in place: 64 bytes. On a device, for a dense array with axes: 16 bytes. */
typedef struct {
    void *data;
    float *scale; /* the array is data * scale, with scale >= 0 (0: the array is 0); NULL: a plain array */
    int32_t dtype, rank;
    int64_t extent[SCALIDE_MAX_RANK], stride[SCALIDE_MAX_RANK];
} scalide_array;

/* Returns the descriptor of a dense array, with row-major strides. `extent` has `rank` numbers; it may be NULL if the rank is 0. The
 * function does not check the rank: scalide_bind rejects a rank outside [0, SCALIDE_MAX_RANK]. */
scalide_array scalide_dense_array(void *data, float *scale, int32_t dtype, int32_t rank, const int64_t *extent);

typedef struct scalide_context scalide_context;
typedef struct scalide_program scalide_program; /* constant data of a generated library, see plan.h */
typedef struct scalide_binding scalide_binding;
typedef struct scalide_constants scalide_constants; /* what a program computed once from its constants */

/* The kinds of devices. A program is built for one kind (--target), and a context is created for one kind. The first context of a kind
 * loads the driver, libcuda.so.1 or libOpenCL.so.1. */
typedef enum { SCALIDE_CPU = 0, SCALIDE_CUDA = 1, SCALIDE_OPENCL = 2, SCALIDE_DEVICE_COUNT } scalide_device;
/* Returns "cpu", "cuda" or "opencl", and "?" for another number. The string is static. */
const char *scalide_device_name(int32_t device);

/* Memory of the application. Set both functions, or none. Any thread of the context may call them; they must not throw. */
typedef struct {
    /* Returns `bytes` bytes, aligned to `alignment` bytes, or NULL. */
    void *(*allocate)(void *user, size_t bytes, size_t alignment);
    void (*release)(void *user, void *memory); /* `memory` is not NULL */
    void *user;
} scalide_allocator;

/* Threads of the application. */
typedef struct {
    /* Calls task(data, i) once for each i in [0, count), on any threads and in any order, and returns when all calls have returned. Calls
     * on different threads may overlap. It must not throw. */
    void (*run)(void *user, int32_t count, void (*task)(void *data, int32_t index), void *data);
    void *user;
} scalide_parallel_for;

/* Options of a context. Fill the struct with zeros first: 0 and NULL mean the default. Then set struct_size = sizeof(scalide_options).
 * Later versions append fields. A smaller size means their defaults. A larger size is an error if a field that the library does not know is
 * not 0. A size without `message_size`, such as 0, is an error: no version has it. */
typedef struct {
    size_t struct_size;       /* sizeof(scalide_options) */
    int32_t threads;          /* number of threads, including the caller. 0: all CPUs that this process may use. Ignored for a device */
    uint64_t scratch_bytes;   /* scratch memory of each thread, in bytes, allocated at once. A kernel that needs more makes it larger in its
                                 first run. 0: 1 MiB */
    int32_t device;           /* scalide_device */
    int32_t device_index;     /* number of the device in the order of the driver, from 0 */
    void *stream;             /* a CUstream of the primary context of the device, or an in-order cl_command_queue. NULL: a new one */
    char *message;            /* a failed scalide_context_create writes its message here. May be NULL */
    size_t message_size;      /* size of `message` in bytes */
    const char *cache_folder; /* CUDA: folder that keeps the chosen cuBLASLt algorithms for later processes. NULL: none */
    int32_t time_matmuls;     /* CUDA: 1: scalide_bind measures the cuBLASLt algorithms of a matmul; 0: it takes the first one that runs */
    /* Memory for the context, its bindings with their intermediate values, the scratch memory, and scalide_allocate on the CPU.
     * allocator.allocate = NULL: malloc. Libraries, files and drivers always use malloc. */
    scalide_allocator allocator;
    /* Runs the parallel loops of kernels with count = `threads`. The context then starts no threads. parallel_for.run = NULL: own threads.
     * Results have the same bits in both cases. */
    scalide_parallel_for parallel_for;
    /* Gets the message of a failed scalide_bind, scalide_load or run, and one line for each new binding and for each matmul that a library
     * refuses. It must not throw, and must not call functions of this header. NULL: no log. */
    void (*log)(void *user, const char *message);
    void *log_user;
    int32_t require_libraries; /* 1: scalide_bind fails if a library refuses a matmul that the program gives to it; 0: another form, or the
                                  kernel of the step, computes the matmul, and the log says so */
} scalide_options;

/* Creates a context. `options` may be NULL: all defaults. The caller destroys the context with scalide_context_destroy.
 * Errors: SCALIDE_INVALID_ARGUMENT (a wrong struct_size, threads outside [0, 1024], an unknown kind of device, a stream of another device,
 * half an allocator),
 * SCALIDE_OUT_OF_MEMORY, SCALIDE_THREAD_FAILED, SCALIDE_NO_DEVICE, SCALIDE_DEVICE_FAILED. */
scalide_status scalide_context_create(const scalide_options *options, scalide_context **context);
/* Releases the caller's handle of a context. It must not be used afterwards. Bindings of the context, and constants on a device, keep the
 * context alive: they work on, and the last one that is destroyed frees its threads and memory. No other thread may use the handle: this
 * function does not wait for other calls. */
void scalide_context_destroy(scalide_context *context);
/* Returns a message about the last failure of this context, such as "digits_step.images: dtype must be f32, got f16. ...". Returns "" if
 * nothing has failed. The text is valid until the next failure of this context. While another thread uses the context, the function returns
 * the text of SCALIDE_BUSY. */
const char *scalide_message(const scalide_context *context);
/* Returns the number of threads that run kernels, including the caller. Returns 1 for a device, and in a forked process, unless
 * options.parallel_for runs the loops. */
int32_t scalide_thread_count(const scalide_context *context);
/* Returns the kind of device of the context, a scalide_device. */
int32_t scalide_context_device(const scalide_context *context);
/* Returns the name that the driver gives to the device, such as "NVIDIA H200". Returns "cpu" for the CPU. */
const char *scalide_context_device_name(const scalide_context *context);

/* Allocates `bytes` bytes of memory that kernels of this context can use, aligned to at least 64 bytes. Release it with scalide_release.
 * Errors: SCALIDE_OUT_OF_MEMORY. */
scalide_status scalide_allocate(scalide_context *context, size_t bytes, void **memory);
/* Releases memory of scalide_allocate. Do this after you destroy the bindings that use it, and before you destroy the context. */
void scalide_release(scalide_context *context, void *memory);
/* Copies `bytes` bytes from host memory `from` to context memory `to`. The copy happens after all earlier runs, and the function waits for
 * it. Errors: SCALIDE_DEVICE_FAILED. */
scalide_status scalide_copy_in(scalide_context *context, void *to, const void *from, size_t bytes);
/* Copies `bytes` bytes from context memory `from` to host memory `to`, after all earlier runs, and waits for the copy.
 * Errors: SCALIDE_DEVICE_FAILED. */
scalide_status scalide_copy_out(scalide_context *context, void *to, const void *from, size_t bytes);
/* Waits until all runs and copies are complete. Errors: SCALIDE_DEVICE_FAILED if one of them failed on the device. */
scalide_status scalide_synchronise(scalide_context *context);

/* Converts the elements of `from` to the dtype of `to`. The arrays have the same shape, are in host memory (in every context) and do not
 * overlap. Their strides are arbitrary numbers of elements. An array with a scale is data * scale.
 *
 * If `to` has a scale, the function chooses it and writes it: the power of two that brings the largest magnitude of the data to
 * [t, 2 * t). t is half of the largest number for a dtype of 8 bits, 16384 for f16, and 1 for wider dtypes. The scale is 1 if the largest
 * magnitude is 0, infinite or NaN.
 *
 * Each element is rounded once, to nearest, ties to even. Numbers beyond the range of an 8- or 16-bit float become the largest number;
 * infinities and NaN stay, and infinity becomes NaN if the dtype has none. A float becomes an integer by rounding towards zero; it
 * saturates, and NaN becomes 0. Integers wrap around. Every number but 0 becomes true.
 * `context` gets the message of an error; it may be NULL. Errors: SCALIDE_INVALID_ARGUMENT. */
scalide_status scalide_convert(scalide_context *context, const scalide_array *from, scalide_array *to);

/* Binds arrays to a program. `arrays` has `count` descriptors in the order of the arguments of the program.
 * The function checks the arrays, computes the values of the symbols, allocates memory for intermediate values and loads the kernels to a
 * device. The runtime copies the descriptors; the memory of the arrays must live as long as the binding.
 * On the CPU it reads the scales of inputs and inouts, and it rejects a scale that is NaN or negative. It does not read a scale in the
 * memory of a device, nor an argument that is an array of scales. Errors: SCALIDE_INVALID_ARGUMENT, SCALIDE_INVALID_PROGRAM,
 * SCALIDE_UNSUPPORTED_CPU, SCALIDE_WRONG_DEVICE, SCALIDE_DEVICE_FAILED, SCALIDE_OUT_OF_MEMORY, SCALIDE_UNSUPPORTED (a library that is
 * required refuses a matmul). Then *binding is NULL. */
scalide_status scalide_bind(scalide_context *context, const scalide_program *program, const scalide_array *arrays, size_t count,
                            scalide_binding **binding);
/* Checks that a program has the arguments of the header with which the caller was compiled: the same names, roles, dtypes, shapes and
 * order. `signature` is a number that `scalide build` writes into the generated header. <name>_bind and <name>_initial_state of that header
 * call this function. Errors: SCALIDE_INVALID_PROGRAM: the library was built again with other arguments. Compile the caller again. */
scalide_status scalide_check_signature(scalide_context *context, const scalide_program *program, uint64_t signature);
/* Makes a further binding of the program of `binding`, for other arrays of the same shapes, so that a program can run more than once at a
 * time: each thread has its own context with one thread, and its own binding. `context` may be the context of `binding` or another one.
 * The new binding shares everything that does not change with `binding`: plan, kernels, constants, sizes. It has its own argument lists and
 * its own arena. `arrays` has `count` descriptors as for scalide_bind; the constants among them are ignored, and the newest constants of
 * `binding` are used. The two bindings are independent: either may be destroyed first. Other threads may run `binding` during the call, and
 * may call scalide_set_constants, but must not destroy it. On a device, `context` must be the context of `binding` if the program has
 * constants. Errors: as scalide_bind; SCALIDE_INVALID_ARGUMENT if a shape differs. Then *result is NULL. */
scalide_status scalide_bind_like(scalide_context *context, const scalide_binding *binding, const scalide_array *arrays, size_t count,
                                 scalide_binding **result);
/* Computes everything that depends only on the constants of a program (arguments with the role SCALIDE_CONSTANT), such as converted
 * weights. `arrays` has `count` descriptors as for scalide_bind, but the function reads only the constants. When it returns, you may free
 * the arrays of the constants. Any number of bindings may use *constants; on the CPU, in any number of contexts and threads. On a device,
 * only bindings of this context may use it. Release it with scalide_constants_destroy. Errors: as scalide_bind and scalide_run. Then
 * *constants is NULL. */
scalide_status scalide_prepare(scalide_context *context, const scalide_program *program, const scalide_array *arrays, size_t count,
                               scalide_constants **constants);
/* Does the same as scalide_bind, with constants that scalide_prepare made for this program. It ignores the constants in `arrays`.
 * scalide_bind calls scalide_prepare itself. The binding keeps the constants alive. Errors: as scalide_bind. */
scalide_status scalide_bind_constants(scalide_context *context, const scalide_program *program, const scalide_array *arrays, size_t count,
                                      scalide_constants *constants, scalide_binding **binding);
/* Replaces the constants of a binding by others of the same program and shapes. Any thread may call it, also during a run. A run uses
 * either only the old or only the new constants; the next run that starts uses the new ones. It does not wait for a run, and writes no
 * message.
 * Errors: SCALIDE_INVALID_ARGUMENT: the constants belong to another program, have other shapes, or are in another device context. */
scalide_status scalide_set_constants(scalide_binding *binding, scalide_constants *constants);
/* Returns the number of bytes that the prepared arrays use. */
size_t scalide_constants_bytes(const scalide_constants *constants);
/* Releases the caller's hold. The memory is freed when no binding uses the constants any more. */
void scalide_constants_destroy(scalide_constants *constants);
/* Replaces argument `index` by another array of the same shape. It makes the same checks as scalide_bind and allocates nothing. So a view
 * cannot replace an array that was dense in scalide_bind. An argument that is copied takes any array.
 * A constant cannot be replaced this way: use scalide_set_constants.
 * Errors: SCALIDE_INVALID_ARGUMENT: the old array stays. SCALIDE_DEVICE_FAILED or SCALIDE_OUT_OF_MEMORY: the binding cannot run again. */
scalide_status scalide_set_argument(scalide_binding *binding, size_t index, const scalide_array *array);
/* Replaces all `count` arguments by other arrays of the same shapes. It is faster than one scalide_set_argument for each array.
 * It ignores the constants in `arrays`.
 * Errors: as scalide_set_argument. */
scalide_status scalide_set_arguments(scalide_binding *binding, const scalide_array *arrays, size_t count);
/* Gives the binding memory of the caller for intermediate values, instead of its own, which it frees. `memory` has `bytes` bytes, at least
 * scalide_arena_bytes, and is aligned to 64 bytes; on a device it is memory of the device, aligned to 256 bytes. It must live as long as
 * the binding uses it, and no argument may be in it. On the CPU, bindings that do not run at the same time may use the same memory.
 * `memory` = NULL: the binding allocates its own memory again. Errors: SCALIDE_INVALID_ARGUMENT, SCALIDE_OUT_OF_MEMORY: the old memory
 * stays. SCALIDE_DEVICE_FAILED: the binding cannot run again. */
scalide_status scalide_set_arena(scalide_binding *binding, void *memory, size_t bytes);
/* Runs the program once. It makes no checks. It allocates memory only if the scratch memory is too small, in the first run.
 * On a device it only starts the steps: wait with scalide_synchronise, or with the stream that you passed. Where a condition of the program
 * decides which steps run, it waits for the condition.
 * Errors: SCALIDE_KERNEL_FAILED, SCALIDE_OUT_OF_MEMORY, SCALIDE_DEVICE_FAILED. After one of these, each later run of this binding returns
 * it. SCALIDE_INTERRUPTED, SCALIDE_STEP_LIMIT: the binding can run again. The content of its outputs and inouts is then not known. */
scalide_status scalide_run(scalide_binding *binding);
/* Stops the run in progress of the context, or the next run if there is none, before the next step of a loop. A program without loops
 * cannot be stopped. The run returns SCALIDE_INTERRUPTED. Any thread and any signal handler may call it at any time. */
void scalide_interrupt(scalide_context *context);
/* Sets a function that stops runs. Loops of programs call it before a step, at most every 10 ms, in the thread of the run and in the float
 * environment of programs. If it returns another number than 0, the run returns SCALIDE_INTERRUPTED. It must not call functions for this
 * context. `poll` = NULL: none, as in a new context. Errors: none but SCALIDE_INVALID_ARGUMENT without a context. */
scalide_status scalide_set_poll(scalide_context *context, int (*poll)(void *user), void *user);
/* Records the steps of the binding as a CUDA graph. Later runs are one launch of the graph. It holds all steps of a loop, so that
 * scalide_interrupt does not stop these runs.
 * Errors: SCALIDE_UNSUPPORTED (the device has no graphs, ranks exchange arrays, data decide how many steps of a loop or which branch runs,
 * or a run has more than 65,536 launches), SCALIDE_DEVICE_FAILED, SCALIDE_OUT_OF_MEMORY, SCALIDE_INTERRUPTED. After an error, the binding
 * still runs without a graph. */
scalide_status scalide_capture(scalide_binding *binding);
/* What a buffer contains: a plain array, or one component of a scaled array (value = data * scale). */
typedef enum { SCALIDE_WHOLE = 0, SCALIDE_DATA = 1, SCALIDE_SCALE = 2 } scalide_part;
/* A buffer that scalide_run_traced reports. */
typedef struct {
    const char *name; /* for people, unique in the plan: "h.data", "h.f16" */
    /* The tensor of the source program that this buffer belongs to, "h". The buffer holds the tensor, a rounded copy of it (`array.dtype`
     * is the format) or a rescaled copy. */
    const char *tensor;
    int32_t part; /* scalide_part */
    /* The steps of the loops around the buffer, the innermost first: "step 17 of scan h in step 2 of while x". Steps count from 0. It is
     * cut after 255 bytes. NULL: it is in no loop. */
    const char *loops;
} scalide_traced;
/* The callback of scalide_run_traced. It gets each buffer after the first step that writes it. In a loop it gets the buffers in each step
 * of the loop, and what the loop computes after the last one. `array.scale` is NULL. The memory is host
 * memory and is valid during the callback. The callback runs in the float environment of programs. `user` is the caller's pointer. */
typedef void (*scalide_trace)(void *user, const scalide_traced *buffer, const scalide_array *array);
/* Runs the program once and calls `trace` for intermediate values when they are computed. `user` is passed to the callback.
 * Some rounded operands and scales exist only in registers. The callback gets them only if the library was built with --traceable.
 * Errors: as scalide_run. */
scalide_status scalide_run_traced(scalide_binding *binding, scalide_trace trace, void *user);
/* The first result of a run that contains an infinity or a NaN. */
typedef struct {
    const char *buffer; /* name of the result in the plan ("h.data", "loss"). NULL: all results are finite */
    const char *kernel; /* name of the kernel that computed it */
    size_t step;        /* number of the step, as in scalide_describe_step */
    const char *loops;  /* the steps of the loops around it, as in scalide_traced, until the next run of the binding. NULL: no loop */
} scalide_non_finite;
/* Runs the program once and writes the first result that is not finite to *first. Arguments and constants are not results, but a copy of an
 * argument is. On a device the function waits for each step and copies its results to the host. Errors: as scalide_run. */
scalide_status scalide_run_checked(scalide_binding *binding, scalide_non_finite *first);
/* The cost of one step. */
typedef struct {
    const char *name; /* name of the kernel, as in scalide_describe_step */
    double seconds; /* of the fastest run, all calls in loops together. On a CUDA GPU: between two events around the launches; OpenCL: with
                       launch and wait */
    uint64_t bytes; /* size of the arrays that the step reads or writes, each counted once */
} scalide_step_profile;
/* Runs the program `runs` times and measures each step. `steps` has scalide_step_count entries. The runs update inouts, as all runs do.
 * Errors: SCALIDE_INVALID_ARGUMENT (runs < 1, a wrong count), and as scalide_run. */
scalide_status scalide_profile(scalide_binding *binding, int32_t runs, scalide_step_profile *steps, size_t count);
/* Destroys a binding, and its context if scalide_context_destroy has released it and this was the last binding. On a device it first waits
 * for its runs. */
void scalide_binding_destroy(scalide_binding *binding);

/* The role of an argument. A SCALIDE_STATE argument is updated in place, as SCALIDE_INOUT is. The policy of the program adds it after the
 * arguments of the program itself. Keep it from run to run, and save it with the rest of the state. scalide_bind or scalide_prepare reads a
 * SCALIDE_CONSTANT argument once; runs do not read it. */
typedef enum { SCALIDE_INPUT = 0, SCALIDE_OUTPUT = 1, SCALIDE_INOUT = 2, SCALIDE_STATE = 3, SCALIDE_CONSTANT = 4 } scalide_role;
/* A description of one argument. */
typedef struct {
    const char *name;
    int32_t dtype, rank, role, scaled; /* role: a scalide_role; scaled: 1 for a scaled array, else 0 */
    int64_t initial;                   /* SCALIDE_STATE: the value of each element before the first run */
} scalide_argument_info;

/* Returns the name of the program. The string lives as long as the program; so do the next two. */
const char *scalide_program_name(const scalide_program *program);
/* Returns the Halide target that the program was built for. Of a program for several CPUs: the first target of its list. */
const char *scalide_program_target(const scalide_program *program);
/* Returns the kind of device that the program needs, a scalide_device. */
int32_t scalide_program_device(const scalide_program *program);
/* Returns the precision policy of the program, as text. */
const char *scalide_program_numerics(const scalide_program *program);
/* Returns the number of arguments. */
size_t scalide_argument_count(const scalide_program *program);
/* Describes argument `index`. Errors: SCALIDE_INVALID_ARGUMENT if there is no such argument. */
scalide_status scalide_describe_argument(const scalide_program *program, size_t index, scalide_argument_info *info);
/* Returns a hash of the program, its policy and its target, as text. */
const char *scalide_program_hash(const scalide_program *program);
/* A description of one extent of an argument. */
typedef struct {
    int64_t value; /* the extent; -1 if it depends on symbols */
    char text[64]; /* the extent in the symbols of the program, such as "64" or "2*b + 1". A longer text is cut. */
} scalide_extent_info;
/* Describes extent `axis` of argument `index`. Errors: SCALIDE_INVALID_ARGUMENT if there is no such axis. */
scalide_status scalide_describe_extent(const scalide_program *program, size_t index, int32_t axis, scalide_extent_info *info);
/* A description of one symbol. Its value is in [minimum, maximum] and is a multiple of `multiple`. */
typedef struct {
    const char *name;
    int64_t minimum, maximum, multiple;
} scalide_symbol_info;
/* Returns the number of symbols, such as `b` in f32[b, 64]. Symbols that the groups of a context define (groups.h), such as a number of
 * ranks, do not count. */
size_t scalide_symbol_count(const scalide_program *program);
/* Describes symbol `index`. Errors: SCALIDE_INVALID_ARGUMENT if there is no such symbol. */
scalide_status scalide_describe_symbol(const scalide_program *program, size_t index, scalide_symbol_info *info);
/* Computes the shapes of all arguments. `values` has the values of the symbols in the order of scalide_describe_symbol. The context must be
 * a rank of the groups of the program (groups.h). The function writes dtype, rank, extents and
 * strides of the arrays. It does not change their pointers. Errors: SCALIDE_INVALID_PROGRAM, SCALIDE_INVALID_ARGUMENT (a value is outside
 * the range of its symbol, or a shape is too large). */
scalide_status scalide_shape_arguments(scalide_context *context, const scalide_program *program, const int64_t *values, size_t value_count,
                                       scalide_array *arrays, size_t count);
/* Returns the index of the argument with this name, or -1. */
int32_t scalide_find_argument(const scalide_program *program, const char *name);
/* Computes the shapes of the outputs from the shapes of the other arrays, so that you can allocate them before scalide_bind.
 * It writes dtype, rank, extents and strides of the arrays with the role SCALIDE_OUTPUT. It ignores data pointers.
 * Errors: as scalide_bind. */
scalide_status scalide_shape_outputs(scalide_context *context, const scalide_program *program, scalide_array *arrays, size_t count);

/* Prepares the state that the policy needs (role SCALIDE_STATE). It writes dtype, rank, extents and strides. If `data` is not NULL, it also
 * writes the initial values to the memory of the context that `data` points to. So a first call with NULL gives the sizes, and a second
 * call writes the values. It ignores the other arrays. Errors: SCALIDE_INVALID_ARGUMENT, SCALIDE_OUT_OF_MEMORY, SCALIDE_DEVICE_FAILED. */
scalide_status scalide_initial_state(scalide_context *context, const scalide_program *program, scalide_array *arrays, size_t count);

/* A description of one step of a run. */
typedef struct {
    const char *name;    /* name of the kernel of the step */
    const char *library; /* library that computes the step ("cublaslt"). NULL: the kernel computes it */
    const char *reason;  /* why the library does not compute the step as the program asks. Otherwise NULL */
    /* If there is a reason and the matmul is not empty: the line that the log got. It names the tensor, its place in the source, the
     * reason, and what computes the step instead: the library with operands of 16 bits, or the kernel. Otherwise NULL. */
    const char *notice;
} scalide_step_info;
/* Returns the program that the binding runs: the bound program, or its variant for this CPU, this GPU or these values of symbols. */
const scalide_program *scalide_binding_program(const scalide_binding *binding);
/* Returns the number of steps of a run. The number may differ between bindings of one program on different GPUs. */
size_t scalide_step_count(const scalide_binding *binding);
/* Describes step `index` of this binding. The strings live as long as the binding. Errors: SCALIDE_INVALID_ARGUMENT if there is no such
 * step. */
scalide_status scalide_describe_step(const scalide_binding *binding, size_t index, scalide_step_info *info);
/* Returns the number of bytes that the binding uses for intermediate values and for dense copies of views: the least size of the memory of
 * scalide_set_arena. */
size_t scalide_arena_bytes(const scalide_binding *binding);
/* Returns the bytes that each run copies for argument `index`, because its array is a view that a kernel cannot use in place. Returns 0 if
 * the kernels use the array in place, and for an index without argument. */
size_t scalide_binding_copied_bytes(const scalide_binding *binding, size_t index);
/* Returns the value of the symbol `name` (such as "b"), or -1 if the program has no such symbol. */
int64_t scalide_symbol_value(const scalide_binding *binding, const char *name);
/* Waits for the run, then reads the value of a scalar buffer of the plan, such as "loss" or "w1.scale". The dtype must be f64, f32, an
 * integer dtype of at most 32 bits or bool. Errors: SCALIDE_INVALID_ARGUMENT, SCALIDE_DEVICE_FAILED. */
scalide_status scalide_read_scalar(const scalide_binding *binding, const char *buffer_name, double *value);

/* A shared library with programs. It exports `const scalide_program *<name>_program(void)` for each program. In <name>, `_` replaces each
 * byte that is not an ASCII letter or digit; `_` also precedes a leading digit. */
typedef struct scalide_library scalide_library;
/* Opens a shared library. Close it with scalide_library_close.
 * If the file was rebuilt since an earlier call, the function loads the new content, and the old library stays usable. Debuggers show the
 * new library as /proc/<process>/fd/<number>. To replace the file, write a new file and rename it, as `scalide build` does. Do not write
 * into a file that is open: this changes the code of the old library. Errors: SCALIDE_FILE_ERROR, SCALIDE_OUT_OF_MEMORY. */
scalide_status scalide_load(scalide_context *context, const char *path, scalide_library **library);
/* Returns the program `name` of the library. The program lives as long as the library. Returns NULL if there is no such program; then
 * scalide_message says so. */
const scalide_program *scalide_library_program(scalide_context *context, const scalide_library *library, const char *name);
/* Closes a library. Destroy the bindings of its programs first. */
void scalide_library_close(scalide_library *library);

#ifdef __cplusplus
}
#endif
#endif

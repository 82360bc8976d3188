/* Tensors on disk in the safetensors format. A scaled tensor `x` is stored as `x.data` and `x.scale` (f32, rank 0);
 * as `x!data` and `x!scale` in a file where another tensor has one of these names. */
#ifndef SCALIDE_SAFETENSORS_H
#define SCALIDE_SAFETENSORS_H

#include "scalide/scalide.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    const char *name;
    scalide_array array;
} scalide_tensor;

typedef struct {
    const char *key, *value;
} scalide_metadata;

typedef struct scalide_safetensors scalide_safetensors;

/* Reads and checks a whole file: SCALIDE_FILE_ERROR or SCALIDE_OUT_OF_MEMORY. On failure *file is NULL and `message` (of message_size
 * bytes, may be NULL) says in words what is wrong, beginning with the file's name. The returned arrays are 64-byte aligned, private copies:
 * they may be written. */
scalide_status scalide_safetensors_read(const char *path, scalide_safetensors **file, char *message, size_t message_size);
void scalide_safetensors_close(scalide_safetensors *file);

/* Tensors in the order of the file's header, `x.data` and `x.scale` each by itself. A tensor that a scalide_array cannot describe, of
 * another dtype (I64, U64, C64) or of more than 8 axes, is skipped: scalide_safetensors_skipped. */
size_t scalide_safetensors_count(const scalide_safetensors *file);
const scalide_tensor *scalide_safetensors_tensor(const scalide_safetensors *file, size_t index);
/* The tensor `name`, or the scaled one made of its two parts. SCALIDE_INVALID_ARGUMENT when there is none, SCALIDE_UNSUPPORTED when the
 * tensor was skipped: scalide_safetensors_explain says why. */
scalide_status scalide_safetensors_find(const scalide_safetensors *file, const char *name, scalide_array *array);
/* Writes to `message` (of message_size bytes) why scalide_safetensors_find does not find `name`: "tensor 'step': dtype must be one of F32
 * ..., got I64. Convert the tensor."; "" when it finds it. */
void scalide_safetensors_explain(const scalide_safetensors *file, const char *name, char *message, size_t message_size);

typedef struct {
    const char *name, *dtype; /* as they stand in the file */
    int32_t rank;
} scalide_skipped_tensor;
/* The skipped tensors in the order of the file's header. */
size_t scalide_safetensors_skipped_count(const scalide_safetensors *file);
const scalide_skipped_tensor *scalide_safetensors_skipped(const scalide_safetensors *file, size_t index);
/* The value of a key of `__metadata__`, or NULL. */
const char *scalide_safetensors_metadata(const scalide_safetensors *file, const char *key);

/* Writes dense tensors (a scaled one as two) to `path`: all or nothing, through a temporary file in the same folder. (When the process
 * is killed `<path>.<process>.<number>.tmp` stays there.)
 * Names, keys and values are UTF-8. SCALIDE_INVALID_ARGUMENT (a tensor, two tensors of one name), SCALIDE_FILE_ERROR or
 * SCALIDE_OUT_OF_MEMORY, with a message as above. */
typedef struct {
    const scalide_tensor *tensors;
    size_t tensor_count;
    const scalide_metadata *metadata;
    size_t metadata_count;
} scalide_safetensors_content;
scalide_status scalide_safetensors_write(const char *path, const scalide_safetensors_content *content, char *message, size_t message_size);

#ifdef __cplusplus
}
#endif
#endif

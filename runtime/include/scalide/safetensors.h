/* Reads and writes safetensors files. A scaled tensor `x` is stored as two tensors: `x.data`, and `x.scale` (one f32 number). If another
 * tensor of the file has one of these names, they are `x!data` and `x!scale`.
 *
 * Different threads may use different files, or read the same open file. The Python functions scalide.save and scalide.load use the same
 * files. */
#ifndef SCALIDE_SAFETENSORS_H
#define SCALIDE_SAFETENSORS_H

#include "scalide/scalide.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The names of the two tensors end in the suffixes of the first row: of the data, and of the scale. The second row is for files in which
 * another tensor has one of these names. */
#define SCALIDE_PART_SUFFIXES                                                                                                              \
    {                                                                                                                                      \
        {".data", ".scale"}, { "!data", "!scale" }                                                                                         \
    }

/* A tensor and its name. */
typedef struct {
    const char *name;
    scalide_array array;
} scalide_tensor;

/* One entry of the metadata of a file. */
typedef struct {
    const char *key, *value;
} scalide_metadata;

/* The content of a file that was read. */
typedef struct scalide_safetensors scalide_safetensors;

/* Reads a whole file into memory and checks it. Free the content with scalide_safetensors_close. The arrays are private copies, aligned to
 * 64 bytes: you may write to them. If it fails, *file is NULL, and `message` gets a text that starts with the name of the file. `message`
 * has message_size bytes; it may be NULL. Errors: SCALIDE_FILE_ERROR, SCALIDE_OUT_OF_MEMORY. */
scalide_status scalide_safetensors_read(const char *path, scalide_safetensors **file, char *message, size_t message_size);
/* Does the same as scalide_safetensors_read, but maps the file, so the operating system reads the pages that you use. The arrays have the
 * alignment of the file, which may be less than an element needs: copy them with memcpy. You may write to them; the file stays unchanged.
 * Do not use it if another process may shorten the file: the system then ends the process that reads the missing pages. */
scalide_status scalide_safetensors_map(const char *path, scalide_safetensors **file, char *message, size_t message_size);
/* Frees the content and all its arrays. NULL is allowed. */
void scalide_safetensors_close(scalide_safetensors *file);

/* Returns the number of tensors. `x.data` and `x.scale` count as two. A tensor that a scalide_array cannot describe is skipped and does not
 * count: its dtype is not in dtypes.h (such as U64, C64), or it has more than 8 axes. See scalide_safetensors_skipped. */
size_t scalide_safetensors_count(const scalide_safetensors *file);
/* Returns tensor `index`, in the order of the header of the file. Returns NULL if there is no such tensor. The tensor lives until the file
 * is closed. */
const scalide_tensor *scalide_safetensors_tensor(const scalide_safetensors *file, size_t index);
/* Finds the tensor `name`. If the file has its data and its scale, *array is a scaled array of both. The array lives until the file is
 * closed. Errors: SCALIDE_INVALID_ARGUMENT (no such tensor), SCALIDE_UNSUPPORTED (the tensor was skipped). scalide_safetensors_explain says
 * why. */
scalide_status scalide_safetensors_find(const scalide_safetensors *file, const char *name, scalide_array *array);
/* Writes to `message` (message_size bytes) why scalide_safetensors_find does not find `name`, such as "tensor 'step': dtype must be one of
 * F32
 * ..., got U64. Convert the tensor." It writes "" if the tensor is found. */
void scalide_safetensors_explain(const scalide_safetensors *file, const char *name, char *message, size_t message_size);

/* A tensor that was skipped. */
typedef struct {
    const char *name, *dtype; /* as in the file */
    int32_t rank;
} scalide_skipped_tensor;
/* Returns the number of skipped tensors. */
size_t scalide_safetensors_skipped_count(const scalide_safetensors *file);
/* Returns skipped tensor `index`, in the order of the header of the file. Returns NULL if there is no such tensor. */
const scalide_skipped_tensor *scalide_safetensors_skipped(const scalide_safetensors *file, size_t index);
/* Returns the value of a key of the metadata (`__metadata__`), or NULL if the key does not exist. The string lives until the file is
 * closed. */
const char *scalide_safetensors_metadata(const scalide_safetensors *file, const char *key);
/* Returns the number of entries of the metadata. */
size_t scalide_safetensors_metadata_count(const scalide_safetensors *file);
/* Returns entry `index` of the metadata, in the order of the file. Returns NULL if there is no such entry. */
const scalide_metadata *scalide_safetensors_metadata_entry(const scalide_safetensors *file, size_t index);

/* What to write. Names, keys and values are UTF-8. */
typedef struct {
    const scalide_tensor *tensors;
    size_t tensor_count;
    const scalide_metadata *metadata;
    size_t metadata_count;
} scalide_safetensors_content;
/* Writes dense tensors to `path`. A scaled tensor becomes two tensors. The function writes a temporary file in the same folder and renames
 * it, so the old file stays if the function fails. If the process is killed, the file `<path>.<process>.<number>.tmp` stays. If it fails,
 * `message` (message_size bytes, may be NULL) gets a text. Errors: SCALIDE_INVALID_ARGUMENT (a wrong tensor, or two tensors with one name),
 * SCALIDE_FILE_ERROR, SCALIDE_OUT_OF_MEMORY. */
scalide_status scalide_safetensors_write(const char *path, const scalide_safetensors_content *content, char *message, size_t message_size);

#ifdef __cplusplus
}
#endif
#endif

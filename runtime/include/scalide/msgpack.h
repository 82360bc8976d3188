/* Reads and writes files in the msgpack layout of Flax: what flax.serialization.to_bytes returns, and the checkpoints of
 * flax.training.checkpoints. A file that is read and written again has the same bytes, if Flax wrote it.
 *
 * A file is a tree of dicts. Its leaves are arrays and Python values. The name of a leaf joins the keys that lead to it with a separator:
 * `params/dense_0/kernel`. Lists have the keys 0, 1, and so on, as Flax writes them. */
#ifndef SCALIDE_MSGPACK_H
#define SCALIDE_MSGPACK_H

#include "scalide/scalide.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The kinds of leaves, with the field that has the value. */
typedef enum {
    SCALIDE_LEAF_ARRAY = 0,    /* a NumPy array: `array` */
    SCALIDE_LEAF_SCALAR = 1,   /* a NumPy scalar such as np.float32(1): `array`, of rank 0 */
    SCALIDE_LEAF_INTEGER = 2,  /* a Python number: `integer` */
    SCALIDE_LEAF_UNSIGNED = 3, /* a Python number from 2^63 to 2^64 - 1: `integer`, as uint64_t */
    SCALIDE_LEAF_FLOAT = 4,    /* a Python number: `number` */
    SCALIDE_LEAF_COMPLEX = 5,  /* a Python number: `number`, `imaginary` */
    SCALIDE_LEAF_BOOL = 6,     /* True or False: `integer` */
    SCALIDE_LEAF_NONE = 7,     /* None */
    SCALIDE_LEAF_TEXT = 8,     /* a text: `data`, `bytes` */
    SCALIDE_LEAF_BYTES = 9,    /* bytes: `data`, `bytes` */
    SCALIDE_LEAF_EMPTY = 10,   /* a dict without entries */
    SCALIDE_LEAF_KIND_COUNT
} scalide_leaf_kind;

/* A leaf of the tree. Fill the struct with zeros before you write its fields. */
typedef struct {
    const char *name; /* UTF-8; "" if the whole file is one leaf */
    int32_t kind;     /* a scalide_leaf_kind */
    /* The dtype of an array by NumPy's name, such as "bfloat16". If it is no scalide_dtype, such as "complex64", `array.dtype` is -1. When
     * you write an array, NULL means the name of `array.dtype`. */
    const char *dtype;
    scalide_array array; /* dense. With a scale, it is written as a dict of `data` and `scale` */
    int64_t integer;
    double number, imaginary;
    const void *data; /* of a text, of bytes, and of an array whose `array.dtype` is -1 */
    size_t bytes;     /* of `data` */
} scalide_leaf;

/* The content of a file that was read. */
typedef struct scalide_msgpack scalide_msgpack;

/* Reads a whole file into memory and checks it. The keys are joined with `separator`; a key that contains it is an error. Free the content
 * with scalide_msgpack_close. The arrays are private copies, aligned to 64 bytes: you may write to them. If it fails, *file is NULL, and
 * `message` (message_size bytes, may be NULL) gets a text that starts with the name of the file. Errors: SCALIDE_FILE_ERROR,
 * SCALIDE_OUT_OF_MEMORY. */
scalide_status scalide_msgpack_read(const char *path, char separator, scalide_msgpack **file, char *message, size_t message_size);
/* Frees the content and all its arrays. NULL is allowed. */
void scalide_msgpack_close(scalide_msgpack *file);
/* Returns the number of leaves. */
size_t scalide_msgpack_count(const scalide_msgpack *file);
/* Returns leaf `index`, in the order of the file. Returns NULL if there is no such leaf. The leaf lives until the file is closed. */
const scalide_leaf *scalide_msgpack_leaf(const scalide_msgpack *file, size_t index);

/* Writes leaves to `path`. Keys get the order in which their first leaves stand. An array of more than `chunk_bytes` bytes is written in
 * chunks, as Flax does; 0: 2^30 bytes, which is also the most. The old file stays if the function fails. If it fails, `message`
 * (message_size bytes, may be NULL) gets a text. Errors: SCALIDE_INVALID_ARGUMENT (a wrong leaf, or two leaves with one name),
 * SCALIDE_FILE_ERROR, SCALIDE_OUT_OF_MEMORY. */
scalide_status scalide_msgpack_write(const char *path, const scalide_leaf *leaves, size_t count, char separator, uint64_t chunk_bytes,
                                     char *message, size_t message_size);

#ifdef __cplusplus
}
#endif
#endif

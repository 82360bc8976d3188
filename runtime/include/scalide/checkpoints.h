/* Saves the arrays of a training run in a folder, one checkpoint for each step, and reads them back bit for bit. The rules are the rules
 * of flax.training.checkpoints: names, order, what is kept, and what an older step means.
 *
 * A checkpoint is a safetensors file `<prefix><step>.safetensors`. If its arrays need more than `shard_bytes` bytes, it is a folder
 * `<prefix><step>` of safetensors files with the index of Hugging Face. With SCALIDE_CHECKPOINT_FLAX it is a file `<prefix><step>` in the
 * layout of Flax.
 *
 * Kills and errors. A checkpoint gets its name when it is complete and on the disk. So a save that fails, or whose process ends, leaves all
 * older checkpoints, and the new one is complete or missing. The next save removes what such a save has left. One process at a time saves
 * under a prefix: a second one gets an error. Reading needs no lock.
 *
 * All functions write a text to `message` (message_size bytes, may be NULL) if they fail. It starts with the name of the folder or file.
 * Different threads may use different folders. */
#ifndef SCALIDE_CHECKPOINTS_H
#define SCALIDE_CHECKPOINTS_H

#include "scalide/msgpack.h"
#include "scalide/safetensors.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The format of a new checkpoint. */
typedef enum {
    SCALIDE_CHECKPOINT_SAFETENSORS = 0,
    SCALIDE_CHECKPOINT_FLAX = 1, /* msgpack, as flax.training.checkpoints writes it; without metadata */
    SCALIDE_CHECKPOINT_FORMAT_COUNT
} scalide_checkpoint_format;

/* Options of a folder. Fill the struct with zeros first: 0 and NULL mean the default. Then set struct_size =
 * sizeof(scalide_checkpoint_options). NULL for the whole struct means all defaults. */
typedef struct {
    size_t struct_size;
    const char *prefix;         /* of the names in the folder; default: "checkpoint_" */
    int64_t keep;               /* the number of newest checkpoints that a save leaves; default: 1 */
    int64_t keep_every_n_steps; /* also leave older checkpoints that are at least so many steps apart; default: none */
    int32_t overwrite;          /* 1: a save may replace its step, and then removes all later checkpoints; default: this is an error */
    int32_t format;             /* a scalide_checkpoint_format */
    uint64_t shard_bytes;       /* the most bytes of arrays in one safetensors file; default: 2 GB */
} scalide_checkpoint_options;

/* The step that stands for the latest checkpoint. */
#define SCALIDE_LATEST_STEP (-1)

/* Saves a checkpoint of `step`, which is at least 0. The folder is made if the folder around it exists. The metadata get the entry
 * `scalide.step`. Afterwards, older checkpoints are removed: see `keep`. Errors: SCALIDE_INVALID_ARGUMENT (a wrong tensor or option; the
 * folder has this step or a later one, and `overwrite` is 0), SCALIDE_FILE_ERROR, SCALIDE_OUT_OF_MEMORY. */
scalide_status scalide_checkpoint_save(const char *folder, int64_t step, const scalide_safetensors_content *content,
                                       const scalide_checkpoint_options *options, char *message, size_t message_size);
/* Saves a checkpoint in the layout of Flax from leaves, as scalide_msgpack_write does: with Python values, and with keys that contain `.`.
 * The format of the options is ignored. Errors: as scalide_checkpoint_save. */
scalide_status scalide_checkpoint_save_leaves(const char *folder, int64_t step, const scalide_leaf *leaves, size_t count, char separator,
                                              const scalide_checkpoint_options *options, char *message, size_t message_size);
/* Writes the number of checkpoints to *count, and the first `capacity` steps, in ascending order, to `steps`. A folder that does not exist
 * has none. Other files of the folder do not count. Errors: SCALIDE_INVALID_ARGUMENT, SCALIDE_FILE_ERROR, SCALIDE_OUT_OF_MEMORY. */
scalide_status scalide_checkpoint_steps(const char *folder, const scalide_checkpoint_options *options, int64_t *steps, size_t capacity,
                                        size_t *count, char *message, size_t message_size);
/* Writes the largest step to *step, or SCALIDE_LATEST_STEP if there is no checkpoint. Errors: as scalide_checkpoint_steps. */
scalide_status scalide_checkpoint_latest(const char *folder, const scalide_checkpoint_options *options, int64_t *step, char *message,
                                         size_t message_size);
/* Writes the path of the checkpoint of a step, or of the latest one, to `path` (path_size bytes). If `found` is not NULL, it gets the step.
 * Errors: SCALIDE_FILE_ERROR (also if there is no such checkpoint), SCALIDE_INVALID_ARGUMENT (also if the path has more bytes),
 * SCALIDE_OUT_OF_MEMORY. */
scalide_status scalide_checkpoint_path(const char *folder, int64_t step, const scalide_checkpoint_options *options, char *path,
                                       size_t path_size, int64_t *found, char *message, size_t message_size);
/* Reads the checkpoint of a step, or the latest one. Close it with scalide_safetensors_close. In a checkpoint of Flax, the keys of an array
 * are joined with `.`, integers become I64 scalars, floats F64 scalars, and truth values BOOL scalars; other leaves are skipped. If
 * `found` is not NULL, it gets the step. Errors: SCALIDE_FILE_ERROR (also if there is no such checkpoint), SCALIDE_OUT_OF_MEMORY. */
scalide_status scalide_checkpoint_read(const char *folder, int64_t step, const scalide_checkpoint_options *options,
                                       scalide_safetensors **file, int64_t *found, char *message, size_t message_size);
/* Reads one checkpoint by its path: a folder, a file `*.safetensors`, or a file of Flax with any other name. Errors: as
 * scalide_checkpoint_read. */
scalide_status scalide_checkpoint_read_path(const char *path, scalide_safetensors **file, char *message, size_t message_size);

/* Copies the arrays of a file into `tensors`, bit for bit. The file must have exactly these arrays, with their dtypes, shapes and scales.
 * Otherwise nothing is copied, and the message names all arrays that are missing, unknown or different. The tensors must be dense.
 * `policy` is the policy of the program: a file that was written for another policy is an error. NULL: any policy. Errors:
 * SCALIDE_INVALID_ARGUMENT. */
scalide_status scalide_checkpoint_restore(const scalide_safetensors *file, const char *policy, const scalide_tensor *tensors, size_t count,
                                          char *message, size_t message_size);

/* Saves all arrays that runs of the binding update: its inouts, and the state of its policy. It waits for the run. The metadata get the
 * policy and the hash of the program (`scalide.policy`, `scalide.program`), and the given entries. The message is scalide_message of the
 * context. Errors: as scalide_checkpoint_save; SCALIDE_UNSUPPORTED (a view on a device), SCALIDE_DEVICE_FAILED. */
scalide_status scalide_binding_save(const scalide_binding *binding, const char *folder, int64_t step, const scalide_metadata *metadata,
                                    size_t metadata_count, const scalide_checkpoint_options *options);
/* Reads them back from the checkpoint of a step, or of the latest one. Nothing is written unless all arrays fit. If `found` is not NULL,
 * it gets the step. The message is scalide_message of the context. Errors: as scalide_checkpoint_read and scalide_checkpoint_restore. */
scalide_status scalide_binding_restore(scalide_binding *binding, const char *folder, int64_t step,
                                       const scalide_checkpoint_options *options, int64_t *found);

#ifdef __cplusplus
}
#endif
#endif

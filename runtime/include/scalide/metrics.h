/* Writes the metrics of a training run, such as its loss, to files: JSON lines, and scalars for TensorBoard.
 *
 * A thread of its own writes the files. scalide_metrics_write puts the numbers into a queue of fixed size and returns, so a step never
 * waits for the disk. Nothing is lost silently: the next call, or scalide_metrics_close, reports an error of the disk and the number of
 * dropped lines. All functions may be called from several threads at once, except scalide_metrics_close.
 *
 * The file metrics.jsonl has one line for each call: {"step": 12, "time": 1767225600.25, "loss": 0.5}. `time` is in seconds since 1970.
 * Numbers read back as the same doubles. NaN and infinities are the strings "nan", "inf" and "-inf". A file that exists is continued; if
 * its last line is torn because a process was killed, the line is removed. One process writes a folder at a time, where the file system has
 * locks. */
#ifndef SCALIDE_METRICS_H
#define SCALIDE_METRICS_H

#include "scalide/scalide.h"
#include "scalide/statistics.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Files that are open for metrics. */
typedef struct scalide_metrics scalide_metrics;

/* Options of scalide_metrics_open. Set struct_size to sizeof(scalide_metrics_options), and all other members to 0 for their defaults. */
typedef struct {
    size_t struct_size;
    int32_t tensorboard;  /* 1: also writes a file events.out.tfevents.* with scalars for TensorBoard */
    uint64_t queue_bytes; /* memory for lines that are not yet in a file; 0: 1 MiB, and 16 MiB for statistics and their scalars */
    int32_t statistics;   /* 1: also writes statistics.jsonl, see scalide_metrics_write_statistics */
} scalide_metrics_options;

/* A number and its name. */
typedef struct {
    const char *name; /* UTF-8 with at least one character, and not "step" or "time" */
    double value;
} scalide_metric;

/* Creates the folder if necessary, opens its files and starts the thread. `options` may be NULL. If it fails, *metrics is NULL, and
 * `message` (message_size bytes, may be NULL) gets a text. Errors: SCALIDE_FILE_ERROR, SCALIDE_OUT_OF_MEMORY, SCALIDE_THREAD_FAILED,
 * SCALIDE_INVALID_ARGUMENT. */
scalide_status scalide_metrics_open(const char *folder, const scalide_metrics_options *options, scalide_metrics **metrics, char *message,
                                    size_t message_size);
/* Queues one line with the numbers of a step. It never waits for the disk.
 *
 * It returns SCALIDE_FILE_ERROR, with the reason in `message`, if lines could not be written since the last report. The line of this call
 * is queued nevertheless, and the thread tries again with each call. It also returns SCALIDE_FILE_ERROR if the queue is full: the line is
 * then dropped and counted. SCALIDE_INVALID_ARGUMENT: a name is wrong or occurs twice, the line is longer than the queue, or the process
 * was forked after scalide_metrics_open. */
scalide_status scalide_metrics_write(scalide_metrics *metrics, int64_t step, const scalide_metric *values, size_t count, char *message,
                                     size_t message_size);
/* Queues the statistics of a program: `count` rows of scalide_read_statistics. The first call for a program writes a line that describes
 * its tensors, with the key "scalide": "statistics". Each call writes a line with one list for each number, in the order of the tensors:
 * {"step": 10, "time": .., "amax": [..], "scale": [..], "rms": [..], "zeros": [..], "saturated": [..], "subnormal": [..],
 * "non_finite": [..], "first": [..], "histogram": [[..], ..]}. A number that the newest step did not collect is null. After the first
 * step in which a tensor has an infinity or a NaN, a line names the first such tensor in the order of the program:
 * {"step": 10, "time": .., "non_finite": {"tensor": "h", "use": "", "operator": "log", "format": "f32", "scope": "head",
 * "direction": "forward", "source": "net.scl:4", "count": 3, "first": 17}}, with the row-major index of the first such element. TensorBoard
 * gets scalars, and histograms of log2 of the magnitudes. Errors: as scalide_metrics_write; SCALIDE_INVALID_ARGUMENT if the metrics were
 * opened without the option `statistics`, or if `count` is wrong. */
scalide_status scalide_metrics_write_statistics(scalide_metrics *metrics, int64_t step, const scalide_program *program,
                                                const scalide_statistic *rows, size_t count, char *message, size_t message_size);
/* Waits until all lines are on the disk. Errors: SCALIDE_FILE_ERROR as in scalide_metrics_write. */
scalide_status scalide_metrics_flush(scalide_metrics *metrics, char *message, size_t message_size);
/* Returns the number of lines that were dropped because a queue was full. The line in metrics.jsonl and the scalars for TensorBoard count
 * once each. */
uint64_t scalide_metrics_dropped(const scalide_metrics *metrics);
/* Writes what is queued, ends the thread, and closes the files. Afterwards the handle is invalid, whatever the status is. If lines were
 * lost, it returns SCALIDE_FILE_ERROR, and the message says how many and why. NULL is allowed. */
scalide_status scalide_metrics_close(scalide_metrics *metrics, char *message, size_t message_size);

#ifdef __cplusplus
}
#endif
#endif

#include "scalide/metrics.h"
#include "base/blocked_signals.h"
#include "base/float_environment.h"
#include "base/memory.h"
#include "files/file.h"
#include "files/utf8.h"
#include "metrics/event_record.h"
#include "metrics/json_line.h"
#include "metrics/record_file.h"
#include "metrics/statistics_line.h"
#include "scalide/plan.h"
#include <atomic>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <new>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

using namespace scalide;

namespace {

constexpr uint64_t default_queue_bytes = 1 << 20, least_queue_bytes = 256, most_queue_bytes = uint64_t(1) << 40;
constexpr size_t name_bytes = 128; // of a file in the folder
constexpr int lines = 0, events = 1, statistics = 2, file_kinds = 3;
constexpr uint64_t large_queue_bytes = 16 << 20; // statistics of 2,000 tensors with histograms need 1 MB a step

std::atomic<uint64_t> event_files{0};

double wall_time() {
    timespec time = {};
    clock_gettime(CLOCK_REALTIME, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

class Locked {
public:
    explicit Locked(pthread_mutex_t &mutex) : mutex_(mutex) { pthread_mutex_lock(&mutex_); }
    Locked(const Locked &) = delete;
    Locked &operator=(const Locked &) = delete;
    ~Locked() { pthread_mutex_unlock(&mutex_); }

private:
    pthread_mutex_t &mutex_;
};

} // namespace

struct scalide_metrics {
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t work = PTHREAD_COND_INITIALIZER, done = PTHREAD_COND_INITIALIZER;
    RecordFile files[file_kinds];
    bool is_open[file_kinds] = {};
    const scalide_program *described = nullptr; // of the last header in the file of statistics
    bool has_non_finite = false;                // the file has the event of the first infinity or NaN of this program
    bool has_work = false, stopping = false;
    uint64_t asked = 0, answered = 0;   // flushes
    int error = 0, failed_file = 0;     // of the disk, since the last report
    uint64_t dropped = 0, reported = 0; // lines
    pid_t process = getpid();
    pthread_t thread = {};
};

namespace {

/// Writes all that is queued for a file. Takes the lock only to exchange blocks.
bool save(scalide_metrics &metrics, RecordFile &file, bool flushes) {
    for (;;) {
        {
            const Locked locked(metrics.mutex);
            if (!file.take_queue()) break;
        }
        if (!file.write()) return false;
    }
    return !flushes || file.flush();
}

void wait_for_work(scalide_metrics &metrics) {
    while (!metrics.has_work && !metrics.stopping) pthread_cond_wait(&metrics.work, &metrics.mutex);
    metrics.has_work = false;
}

void *thread_main(void *argument) {
    auto &metrics = *static_cast<scalide_metrics *>(argument);
    for (bool last = false; !last;) {
        uint64_t asked;
        {
            const Locked locked(metrics.mutex);
            wait_for_work(metrics);
            asked = metrics.asked;
            last = metrics.stopping;
        }
        int errors[file_kinds] = {};
        for (int i = 0; i < file_kinds; ++i)
            if (metrics.is_open[i] && !save(metrics, metrics.files[i], last || asked != metrics.answered)) errors[i] = errno;
        const Locked locked(metrics.mutex);
        for (int i = 0; i < file_kinds; ++i) {
            if (errors[i] == 0) continue;
            metrics.error = errors[i];
            metrics.failed_file = i;
        }
        metrics.answered = asked;
        pthread_cond_broadcast(&metrics.done);
    }
    return nullptr;
}

bool start_thread(scalide_metrics &metrics) {
    const BlockedSignals blocked;
    return pthread_create(&metrics.thread, nullptr, thread_main, &metrics) == 0;
}

/// The memory of one object: itself, the paths of its files, and their queues.
struct Parts {
    scalide_metrics *metrics;
    char *paths[file_kinds], *queues[file_kinds];
    uint64_t bytes;

    Parts(void *memory, size_t path_bytes, const uint64_t *queue_bytes) {
        Carver carver(memory);
        metrics = reinterpret_cast<scalide_metrics *>(carver.take<char>(sizeof(scalide_metrics))); // `destroy` calls its destructor
        for (char *&path : paths) path = carver.take<char>(path_bytes);
        for (int i = 0; i < file_kinds; ++i) queues[i] = carver.take<char>(2 * queue_bytes[i]);
        bytes = carver.bytes();
    }
};

/// The state while one folder is opened.
struct Opening {
    const char *folder;
    char *message;
    size_t message_size;
    uint64_t queue_bytes[file_kinds]; ///< by kind of file; 0: no such file
    scalide_status failure;

    scalide_status refuse(scalide_status status, const char *text) const {
        Text(message, message_size, Text::Use::message) << folder << ": " << text;
        return status;
    }
    /// Reports the error that errno has.
    bool system_error(const char *path, const char *verb, const char *advice) {
        failure = SCALIDE_FILE_ERROR;
        Text text = FileMessage{path, message, message_size}.begin() << "cannot " << verb << ": ";
        print_system_error(text, errno) << advice;
        return false;
    }
};

/// Creates the folder and the folders around it. `path` is memory for the path.
bool make_folders(Opening &opening, char *path) {
    const size_t length = std::strlen(opening.folder);
    for (size_t i = 1; i <= length; ++i) {
        if (i < length && opening.folder[i] != '/') continue;
        std::memcpy(path, opening.folder, i);
        path[i] = 0;
        if (mkdir(path, 0777) != 0 && errno != EEXIST) return opening.system_error(path, "create this folder", "Choose another folder.");
    }
    return true;
}

/// Opens a file of JSON lines, and continues it.
bool open_lines(Opening &opening, const Parts &parts, int kind) {
    const char *path = parts.paths[kind];
    File file(path, O_RDWR | O_CREAT | O_APPEND);
    if (!file.is_open()) return opening.system_error(path, "open this file", "Choose another folder.");
    if (!file.lock()) {
        opening.failure = SCALIDE_FILE_ERROR;
        FileMessage{path, opening.message, opening.message_size}.begin()
            << "cannot write this file: other metrics are open in the folder. Close them, or choose another folder.";
        return false;
    }
    if (!heal_last_line(file)) return opening.system_error(path, "repair the last line", "Move the file away, or choose another folder.");
    parts.metrics->files[kind] = {std::move(file), path, whole_lines, parts.queues[kind], opening.queue_bytes[kind]};
    return parts.metrics->is_open[kind] = true;
}

bool open_events(Opening &opening, const Parts &parts) {
    const char *path = parts.paths[events];
    unsigned char record[128];
    Bytes bytes = {record, sizeof(record)};
    put_file_version(bytes, wall_time());
    File file(path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND);
    if (!file.is_open() || !file.write(record, bytes.size)) return opening.system_error(path, "write this file", "Check the free space.");
    parts.metrics->files[events] = {std::move(file), path, whole_records, parts.queues[events], opening.queue_bytes[events]};
    return parts.metrics->is_open[events] = true;
}

bool open_files(Opening &opening, const Parts &parts, size_t path_bytes) {
    if (!make_folders(opening, parts.paths[lines])) return false;
    Text(parts.paths[lines], path_bytes) << opening.folder << "/metrics.jsonl";
    Text(parts.paths[statistics], path_bytes) << opening.folder << "/statistics.jsonl";
    Text(parts.paths[events], path_bytes) << opening.folder << "/events.out.tfevents." << static_cast<int64_t>(wall_time()) << ".scalide."
                                          << int64_t(getpid()) << '.' << event_files.fetch_add(1);
    if (!open_lines(opening, parts, lines)) return false;
    if (opening.queue_bytes[statistics] > 0 && !open_lines(opening, parts, statistics)) return false;
    if (opening.queue_bytes[events] > 0 && !open_events(opening, parts)) return false;
    if (start_thread(*parts.metrics)) return true;
    opening.failure = opening.refuse(SCALIDE_THREAD_FAILED, "cannot start a thread. End other threads, or raise the limit of the system.");
    return false;
}

void destroy(scalide_metrics *metrics) {
    for (RecordFile &file : metrics->files) file.close();
    metrics->~scalide_metrics();
    release(metrics);
}

/// Returns what is wrong with a metric, or nullptr.
const char *wrong_with(const scalide_metric *values, size_t index) {
    const char *name = values[index].name;
    if (!name || !*name || !is_utf8(name)) return "must be UTF-8 text with at least one character. Rename the metric.";
    if (std::strcmp(name, "step") == 0 || std::strcmp(name, "time") == 0) return "is a name of each line. Rename the metric.";
    for (size_t i = 0; i < index; ++i)
        if (std::strcmp(values[i].name, name) == 0) return "occurs twice. Rename one of the metrics.";
    return nullptr;
}

scalide_status refuse_long_line(const RecordFile &file, uint64_t bytes, char *message, size_t message_size) {
    Text(message, message_size, Text::Use::message) << "scalide_metrics_write: a line must have at most " << uint64_t(file.capacity() - 1)
                                                    << " bytes, got " << bytes << ". Raise queue_bytes, or write fewer metrics.";
    return SCALIDE_INVALID_ARGUMENT;
}

/// Keeps a record that was written into the queue, if it fits.
void add_or_drop(scalide_metrics &metrics, int kind, size_t size, size_t room) {
    if (size < room) {
        metrics.files[kind].add(size);
    } else {
        ++metrics.dropped;
    }
}

/// Queues a line for each file. Returns the size of a line that is longer than its queue, otherwise 0. Needs the lock.
uint64_t queue_lines(scalide_metrics &metrics, int64_t step, const scalide_metric *values, size_t count) {
    const double time = wall_time();
    size_t sizes[2], rooms[2];
    for (int i = lines; i <= events; ++i) {
        if (!metrics.is_open[i]) continue;
        const RecordFile &file = metrics.files[i];
        rooms[i] = file.room();
        Text text(i == lines ? file.end() : nullptr, rooms[i]);
        Bytes bytes = {reinterpret_cast<unsigned char *>(file.end()), rooms[i]};
        if (i == lines) print_line(text, time, step, values, count);
        if (i == events) put_scalars(bytes, time, step, values, count);
        sizes[i] = i == lines ? text.size() : bytes.size;
        if (sizes[i] >= file.capacity()) return sizes[i];
    }
    for (int i = lines; i <= events; ++i)
        if (metrics.is_open[i]) add_or_drop(metrics, i, sizes[i], rooms[i]);
    return 0;
}

/// Queues the tensors of a program before their first line, then a line, then a record for TensorBoard. Needs the lock.
uint64_t queue_statistics(scalide_metrics &metrics, int64_t step, const scalide_program &program, const scalide_statistic *rows) {
    const double time = wall_time();
    const auto queue = [&](const auto &print) -> uint64_t {
        RecordFile &file = metrics.files[statistics];
        const size_t room = file.room();
        Text text(file.end(), room);
        print(text);
        if (text.size() == 0) return 0;
        if (text.size() >= file.capacity()) return text.size();
        add_or_drop(metrics, statistics, text.size(), room);
        return 0;
    };
    if (metrics.described != &program) {
        const uint64_t too_long = queue([&](Text &text) { print_statistics_header(text, program); });
        if (too_long > 0) return too_long;
        metrics.described = &program;
        metrics.has_non_finite = false;
    }
    uint64_t too_long = queue([&](Text &text) { print_statistics_line(text, time, step, program, rows); });
    if (too_long == 0 && !metrics.has_non_finite)
        too_long = queue([&](Text &text) { metrics.has_non_finite = print_first_non_finite(text, time, step, program, rows); });
    if (too_long > 0 || !metrics.is_open[events]) return too_long;
    RecordFile &file = metrics.files[events];
    const size_t room = file.room();
    Bytes bytes = {reinterpret_cast<unsigned char *>(file.end()), room};
    put_statistics(bytes, time, step, program, rows);
    if (bytes.size >= file.capacity()) return bytes.size;
    add_or_drop(metrics, events, bytes.size, room);
    return 0;
}

/// Reports the errors since the last report, and forgets them. Needs the lock. `lost`: lines that will not be written any more.
scalide_status report(scalide_metrics &metrics, uint64_t lost, char *message, size_t message_size) {
    const int error = metrics.error;
    const uint64_t dropped = metrics.dropped - metrics.reported;
    metrics.error = 0;
    metrics.reported = metrics.dropped;
    if (error == 0 && dropped == 0 && lost == 0) return SCALIDE_OK;
    Text text = FileMessage{metrics.files[error ? metrics.failed_file : lines].path(), message, message_size}.begin();
    if (error != 0) print_system_error(text << "cannot write this file: ", error);
    if (lost > 0) text << lost << (lost == 1 ? " line is lost. " : " lines are lost. ");
    if (dropped > 0) text << dropped << (dropped == 1 ? " line was" : " lines were") << " dropped, because the queue was full. ";
    text << (error != 0 ? "Free space on the disk, or choose another folder." : "Write fewer lines, or raise queue_bytes.");
    return SCALIDE_FILE_ERROR;
}

scalide_status check_handle(const scalide_metrics *metrics, const char *function, char *message, size_t message_size) {
    if (!metrics) {
        Text(message, message_size) << function << ": metrics must not be NULL.";
        return SCALIDE_INVALID_ARGUMENT;
    }
    if (metrics->process == getpid()) return SCALIDE_OK;
    Text(message, message_size) << function << ": the process was forked after scalide_metrics_open, so it has no thread that writes. "
                                << "Open the metrics in this process.";
    return SCALIDE_INVALID_ARGUMENT;
}

} // namespace

scalide_status scalide_metrics_open(const char *folder, const scalide_metrics_options *options, scalide_metrics **metrics, char *message,
                                    size_t message_size) {
    if (metrics) *metrics = nullptr;
    if (!folder || !metrics) return refuse_null(message, message_size, folder ? "metrics" : "folder");
    const FloatEnvironment environment;
    const uint64_t asked = options ? options->queue_bytes : 0;
    const bool has_events = options && options->tensorboard, has_statistics = options && options->statistics;
    const uint64_t large = asked ? asked : large_queue_bytes, small = asked ? asked : default_queue_bytes;
    Opening opening = {folder,
                       message,
                       message_size,
                       {small, has_events ? (has_statistics ? large : small) : 0, has_statistics ? large : 0},
                       SCALIDE_FILE_ERROR};
    if (!*folder) return opening.refuse(SCALIDE_INVALID_ARGUMENT, "the name of the folder must not be empty. Name a folder.");
    if (options && options->struct_size != sizeof(*options))
        return opening.refuse(SCALIDE_INVALID_ARGUMENT, "struct_size must be sizeof(scalide_metrics_options). Set it.");
    if (small < least_queue_bytes || small > most_queue_bytes)
        return opening.refuse(SCALIDE_INVALID_ARGUMENT, "queue_bytes must be from 256 to 2^40, or 0. Choose such a number.");
    const size_t path_bytes = std::strlen(folder) + name_bytes;
    void *memory = allocate(Parts(nullptr, path_bytes, opening.queue_bytes).bytes);
    if (!memory) return opening.refuse(SCALIDE_OUT_OF_MEMORY, "out of memory: cannot allocate the queue. Choose fewer queue_bytes.");
    const Parts parts(memory, path_bytes, opening.queue_bytes);
    new (parts.metrics) scalide_metrics();
    if (!open_files(opening, parts, path_bytes)) {
        destroy(parts.metrics);
        return opening.failure;
    }
    *metrics = parts.metrics;
    return SCALIDE_OK;
}

scalide_status scalide_metrics_write(scalide_metrics *metrics, int64_t step, const scalide_metric *values, size_t count, char *message,
                                     size_t message_size) {
    const scalide_status status = check_handle(metrics, "scalide_metrics_write", message, message_size);
    if (status != SCALIDE_OK) return status;
    if (count > 0 && !values) return refuse_null(message, message_size, "values");
    for (size_t i = 0; i < count; ++i) {
        const char *wrong = wrong_with(values, i);
        if (!wrong) continue;
        (Text(message, message_size, Text::Use::message) << "metric '").name(values[i].name ? values[i].name : "") << "' " << wrong;
        return SCALIDE_INVALID_ARGUMENT;
    }
    const FloatEnvironment environment;
    const Locked locked(metrics->mutex);
    const uint64_t too_long = queue_lines(*metrics, step, values, count);
    if (too_long > 0) return refuse_long_line(metrics->files[lines], too_long, message, message_size);
    metrics->has_work = true;
    pthread_cond_signal(&metrics->work);
    return report(*metrics, 0, message, message_size);
}

scalide_status scalide_metrics_write_statistics(scalide_metrics *metrics, int64_t step, const scalide_program *program,
                                                const scalide_statistic *rows, size_t count, char *message, size_t message_size) {
    const scalide_status status = check_handle(metrics, "scalide_metrics_write_statistics", message, message_size);
    if (status != SCALIDE_OK) return status;
    if (!program || (count > 0 && !rows)) return refuse_null(message, message_size, program ? "rows" : "program");
    if (!metrics->is_open[statistics] || count != scalide_statistics_count(program)) {
        Text(message, message_size, Text::Use::message)
            << "scalide_metrics_write_statistics: "
            << (metrics->is_open[statistics] ? "the number of rows must be that of the program. Ask scalide_statistics_count."
                                             : "the metrics have no file of statistics. Open them with the option 'statistics'.");
        return SCALIDE_INVALID_ARGUMENT;
    }
    const FloatEnvironment environment;
    const Locked locked(metrics->mutex);
    const uint64_t too_long = queue_statistics(*metrics, step, *program, rows);
    if (too_long > 0) return refuse_long_line(metrics->files[statistics], too_long, message, message_size);
    metrics->has_work = true;
    pthread_cond_signal(&metrics->work);
    return report(*metrics, 0, message, message_size);
}

scalide_status scalide_metrics_flush(scalide_metrics *metrics, char *message, size_t message_size) {
    const scalide_status status = check_handle(metrics, "scalide_metrics_flush", message, message_size);
    if (status != SCALIDE_OK) return status;
    const Locked locked(metrics->mutex);
    const uint64_t number = ++metrics->asked;
    metrics->has_work = true;
    pthread_cond_signal(&metrics->work);
    while (metrics->answered < number) pthread_cond_wait(&metrics->done, &metrics->mutex);
    return report(*metrics, 0, message, message_size);
}

uint64_t scalide_metrics_dropped(const scalide_metrics *metrics) {
    if (!metrics) return 0;
    const Locked locked(const_cast<scalide_metrics *>(metrics)->mutex);
    return metrics->dropped;
}

scalide_status scalide_metrics_close(scalide_metrics *metrics, char *message, size_t message_size) {
    if (!metrics) return SCALIDE_OK;
    scalide_status status = check_handle(metrics, "scalide_metrics_close", message, message_size);
    if (status == SCALIDE_OK) {
        {
            const Locked locked(metrics->mutex);
            metrics->stopping = true;
            pthread_cond_signal(&metrics->work);
        }
        pthread_join(metrics->thread, nullptr);
        uint64_t lost = 0;
        for (const RecordFile &file : metrics->files) lost += file.unwritten();
        status = report(*metrics, lost, message, message_size);
    }
    destroy(metrics);
    return status;
}

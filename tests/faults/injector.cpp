// Preloaded into `scalide`: lets a call to the C library fail. SCALIDE_FAULT is `<kind>:<number>`, the call of that kind since main began,
// children included, counted from 0. On a disk that is full all later calls fail too. How many there were, and what the last one that
// failed is called, is left in the file SCALIDE_FAULT_CALLS. Kind `pause` lets nothing fail: each rename waits for up to so many
// milliseconds. Kinds `death` and `deaths` kill the child process, or each from it on, that is about to begin as that many-th. With
// SCALIDE_FAULT_PLACES, `<callers> <file>`, the numbers of the calls that are the first of their place are written into the file: a place
// is so many return addresses.
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
#include <unwind.h>
#include <utility>

namespace {

enum Kind { none, memory, file, disk, process, pause_, death, deaths };
constexpr const char *kind_names[] = {"", "memory", "file", "disk", "process", "pause", "death", "deaths"};

Kind kind = none;
int64_t number = 0;

/// What the test reads.
struct Record {
    std::atomic<int64_t> calls; // of this kind
    char failed[56];            // the name of the last call that failed
};
Record *record = nullptr; // shared with the children

/// Places of calls, as hashes of return addresses.
class Places {
public:
    void open(const char *text) {
        char *file = nullptr;
        callers_ = static_cast<int>(std::strtol(text, &file, 10)) + own_frames;
        list_ = ::open(file + 1, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0666);
    }

    [[gnu::noinline]] void add(int64_t call) {
        static thread_local bool is_inside = false; // unwinding may allocate
        if (list_ < 0 || is_inside) return;
        is_inside = true;
        Stack stack = {0, callers_};
        _Unwind_Backtrace(add_frame, &stack);
        if (is_new(stack.hash)) dprintf(list_, "%ld\n", call);
        is_inside = false;
    }

private:
    static constexpr int own_frames = 3; // add, fails, malloc
    static constexpr size_t most = size_t(1) << 20;
    struct Stack {
        uint64_t hash;
        int frames;
    };

    static _Unwind_Reason_Code add_frame(_Unwind_Context *context, void *data) {
        auto *stack = static_cast<Stack *>(data);
        stack->hash = (stack->hash ^ _Unwind_GetIP(context)) * 0x9E3779B97F4A7C15u;
        stack->hash ^= stack->hash >> 29;
        return --stack->frames > 0 ? _URC_NO_REASON : _URC_END_OF_STACK;
    }

    bool is_new(uint64_t hash) {
        size_t slot = hash % most;
        while (known_[slot] != 0 && known_[slot] != hash) slot = (slot + 1) % most;
        return std::exchange(known_[slot], hash) == 0;
    }

    int callers_ = 0, list_ = -1;
    uint64_t known_[most] = {}; // each process has its own
};
Places places;

/// True when this call is to fail, for this reason.
[[gnu::noinline]] bool fails(const char *name, Kind of, int reason) {
    if (kind == pause_ && std::strcmp(name, "rename") == 0) usleep(static_cast<useconds_t>(std::rand() % (1000 * number)));
    if (!record || (of != kind && !(of == disk && kind == file))) return false;
    const int64_t now = record->calls.fetch_add(1);
    places.add(now);
    if (number < 0 || now < number || (now > number && kind != disk)) return false;
    std::strncpy(record->failed, name, sizeof(record->failed) - 1);
    errno = reason;
    return true;
}

void die_as_child() {
    if (kind != death && kind != deaths) return;
    const int64_t child = record->calls.fetch_add(1);
    if (child == number || (kind == deaths && child > number)) kill(getpid(), SIGKILL);
}

/// The C library's own function.
template<typename Function>
Function real(Function, const char *name) {
    return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

// Compilers and shells that `scalide` starts are left alone.
bool is_wanted() { return std::getenv("SCALIDE_FAULT") && std::strcmp(program_invocation_short_name, "scalide") == 0; }

void begin() {
    const char *fault = std::getenv("SCALIDE_FAULT"), *colon = std::strchr(fault, ':');
    for (const Kind row : {memory, file, disk, process, pause_, death, deaths}) {
        if (std::strncmp(fault, kind_names[row], std::strlen(kind_names[row])) == 0) kind = row;
    }
    number = std::atoll(colon + 1);
    std::srand(static_cast<unsigned>(getpid()));
    const int counts = real(&::open, "open")(std::getenv("SCALIDE_FAULT_CALLS"), O_RDWR | O_CREAT, 0666);
    if (ftruncate(counts, sizeof(Record)) != 0) _exit(99);
    void *shared = mmap(nullptr, sizeof(Record), PROT_READ | PROT_WRITE, MAP_SHARED, counts, 0);
    real(&::close, "close")(counts);
    if (shared == MAP_FAILED) _exit(99);
    if (const char *text = std::getenv("SCALIDE_FAULT_PLACES")) places.open(text);
    record = static_cast<Record *>(shared);
}

using Main = int (*)(int, char **, char **);
Main real_main;

int counted_main(int count, char **words, char **environment) {
    if (is_wanted()) begin();
    const int status = real_main(count, words, environment);
    kind = none;
    return status;
}

} // namespace

extern "C" {

int __libc_start_main(Main main, int count, char **words, void (*init)(), void (*fini)(), void (*rtld_fini)(), void *stack_end) {
    real_main = main;
    return real(&__libc_start_main, "__libc_start_main")(counted_main, count, words, init, fini, rtld_fini, stack_end);
}

// The allocator by its own names: dlsym allocates.
void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);

void *malloc(size_t bytes) { return fails("malloc", memory, ENOMEM) ? nullptr : __libc_malloc(bytes); }
void *calloc(size_t count, size_t bytes) { return fails("calloc", memory, ENOMEM) ? nullptr : __libc_calloc(count, bytes); }
void *realloc(void *old, size_t bytes) { return fails("realloc", memory, ENOMEM) ? nullptr : __libc_realloc(old, bytes); }
void *aligned_alloc(size_t alignment, size_t bytes) {
    return fails("aligned_alloc", memory, ENOMEM) ? nullptr : __libc_memalign(alignment, bytes);
}
int posix_memalign(void **result, size_t alignment, size_t bytes) {
    if (fails("posix_memalign", memory, ENOMEM)) return ENOMEM;
    *result = __libc_memalign(alignment, bytes);
    return *result ? 0 : ENOMEM;
}

#define SCALIDE_FAIL(of, reason, failed, type, name, parameters, arguments)                                                                \
    type name parameters { return fails(#name, of, reason) ? failed : real(&::name, #name) arguments; }

SCALIDE_FAIL(disk, ENOSPC, -1, ssize_t, write, (int file_, const void *from, size_t bytes), (file_, from, bytes))
SCALIDE_FAIL(disk, ENOSPC, -1, ssize_t, writev, (int file_, const iovec *parts, int count), (file_, parts, count))
SCALIDE_FAIL(file, EIO, -1, ssize_t, read, (int file_, void *to, size_t bytes), (file_, to, bytes))
SCALIDE_FAIL(file, ENOSPC, nullptr, FILE *, fopen, (const char *path, const char *mode), (path, mode))
SCALIDE_FAIL(file, ENOSPC, nullptr, FILE *, fopen64, (const char *path, const char *mode), (path, mode))
SCALIDE_FAIL(file, ENOSPC, nullptr, FILE *, tmpfile, (), ())
SCALIDE_FAIL(file, ENOSPC, nullptr, FILE *, tmpfile64, (), ())
SCALIDE_FAIL(file, ENOSPC, -1, int, rename, (const char *from, const char *to), (from, to))
SCALIDE_FAIL(file, EIO, -1, int, remove, (const char *path), (path))
SCALIDE_FAIL(file, EIO, -1, int, unlink, (const char *path), (path))
SCALIDE_FAIL(file, EIO, -1, int, unlinkat, (int folder, const char *path, int flags), (folder, path, flags))
SCALIDE_FAIL(file, ENOSPC, -1, int, mkdir, (const char *path, mode_t mode), (path, mode))
SCALIDE_FAIL(file, EIO, -1, int, stat, (const char *path, struct stat *facts), (path, facts))
SCALIDE_FAIL(file, EIO, -1, int, fstat, (int file_, struct stat *facts), (file_, facts))
SCALIDE_FAIL(file, EIO, -1, int, access, (const char *path, int mode), (path, mode))
SCALIDE_FAIL(file, EIO, nullptr, DIR *, opendir, (const char *path), (path))
SCALIDE_FAIL(file, EIO, -1, int, utimensat, (int folder, const char *path, const timespec *times, int flags), (folder, path, times, flags))
SCALIDE_FAIL(process, EINTR, -1, pid_t, wait, (int *status), (status))
SCALIDE_FAIL(process, EINTR, -1, pid_t, waitpid, (pid_t process_, int *status, int flags), (process_, status, flags))
SCALIDE_FAIL(process, EACCES, -1, int, execvp, (const char *path, char *const *words), (path, words))
SCALIDE_FAIL(process, EBUSY, -1, int, dup2, (int from, int to), (from, to))

pid_t fork() {
    const pid_t child = fails("fork", process, EAGAIN) ? -1 : real(&::fork, "fork")();
    if (child == 0) die_as_child();
    return child;
}

int close(int file_) { // a file whose closing fails is closed
    const bool failed = fails("close", file, EIO);
    const int status = real(&::close, "close")(file_);
    if (failed) errno = EIO;
    return failed ? -1 : status;
}

int open(const char *path, int flags, ...) {
    std::va_list more;
    va_start(more, flags);
    const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(more, mode_t) : 0;
    va_end(more);
    return fails("open", file, ENOSPC) ? -1 : real(&::open, "open")(path, flags, mode);
}
int openat(int folder, const char *path, int flags, ...) {
    std::va_list more;
    va_start(more, flags);
    const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(more, mode_t) : 0;
    va_end(more);
    return fails("openat", file, ENOSPC) ? -1 : real(&::openat, "openat")(folder, path, flags, mode);
}
}

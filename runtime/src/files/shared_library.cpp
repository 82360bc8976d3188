#include "files/shared_library.h"
#include "files/elf_file.h"
#include "files/file.h"
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace scalide {

namespace {

pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
SharedLibrary *loaded = nullptr;

struct Lock {
    Lock() { pthread_mutex_lock(&mutex); }
    ~Lock() { pthread_mutex_unlock(&mutex); }
    Lock(const Lock &) = delete;
    Lock &operator=(const Lock &) = delete;
};

int64_t nanoseconds(const timespec &time) { return static_cast<int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec; }

// File systems take the time of a change from the system's last tick, which is at most 10 ms old. This limit leaves a margin.
constexpr int64_t settling_ns = 100'000'000;

FileIdentity identity_of(const File &file) {
    struct stat facts;
    timespec now;
    if (!file.is_open() || fstat(file.descriptor(), &facts) != 0 || clock_gettime(CLOCK_REALTIME, &now) != 0) return {};
    const int64_t changed = nanoseconds(facts.st_ctim);
    return {facts.st_dev, facts.st_ino, facts.st_size, changed, nanoseconds(now) - changed > settling_ns};
}

/// True if the loader would return a library that is already loaded, because of its name or its file.
bool is_known(const char *name) {
    void *handle = dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
    if (handle) dlclose(handle);
    return handle != nullptr;
}

bool check_file(const char *path, Text &why) {
    char memory[128];
    Text reason(memory, sizeof(memory));
    if (is_loadable(path, reason)) return true;
    why << "cannot load this file: " << memory << ". Build it with 'scalide build --shared'.";
    return false;
}

bool open_library(SharedLibrary &library, Text &why) {
    const char *name = library.loaded_name();
    library.handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library.handle) return true;
    const char *error = dlerror();
    const size_t length = std::strlen(name);
    why << "cannot load this file: ";
    if (std::strncmp(error, name, length) == 0) { // the message already begins with the caller's path
        error += length;
        if (std::strncmp(error, ": ", 2) == 0) error += 2;
    }
    why << error << ". Build it with 'scalide build --shared'.";
    return false;
}

bool fail_to_copy(Text &why) {
    why << "cannot load this file while an older file of the same name is open: ";
    char memory[128];
    why << strerror_r(errno, memory, sizeof(memory)) << ". Close the older library first.";
    return false;
}

void take_name(SharedLibrary &library, const File &file) {
    Text(library.name, sizeof(library.name)) << "/proc/" << int64_t(getpid()) << "/fd/" << file.descriptor();
}

/// Returns a copy of the file in memory, which has its own inode. The copy is closed if this fails.
File copy_of(const File &file) {
    File copy(memfd_create("scalide_library", MFD_CLOEXEC));
    uint64_t bytes = 0;
    bool good = copy.is_open() && file.size(&bytes);
    char buffer[16384];
    for (uint64_t at = 0; good && at < bytes; at += sizeof(buffer)) {
        const uint64_t part = std::min<uint64_t>(sizeof(buffer), bytes - at);
        good = file.read_at(at, buffer, part) && copy.write(buffer, part);
    }
    return good ? std::move(copy) : File();
}

/// Loads the file under a name of its own. If the loader does not know its inode, the file itself is loaded, so that profilers find it;
/// otherwise a copy.
bool load_apart(SharedLibrary &library, File file, Text &why) {
    take_name(library, file);
    if (is_known(library.name)) {
        file = copy_of(file);
        take_name(library, file);
        // The loader never unloads some libraries, and keeps their names although the descriptors are closed.
        while (file.is_open() && is_known(library.name)) {
            file = File(fcntl(file.descriptor(), F_DUPFD_CLOEXEC, file.descriptor() + 1));
            take_name(library, file);
        }
        if (!file.is_open()) return fail_to_copy(why);
        if (!check_file(library.name, why)) return false;
    }
    library.file = std::move(file);
    return open_library(library, why);
}

/// Opens another handle of a loaded library that has the same content.
bool share(SharedLibrary &library) {
    for (const SharedLibrary *other = loaded; other; other = other->next) {
        if (!other->identity.is_same_content(library.identity)) continue;
        library.handle = dlopen(other->loaded_name(), RTLD_NOW | RTLD_NOLOAD);
        if (library.handle == other->handle) {
            std::memcpy(library.name, other->name, sizeof(library.name));
            return true;
        }
        if (library.handle) dlclose(library.handle);
    }
    return false;
}

/// The loader searches for a path without `/`. This function then opens the file that the loader has found before, and returns a closed
/// file if there is none.
File open_file(const char *path) {
    if (std::strchr(path, '/')) return File(path, O_RDONLY);
    void *handle = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
    link_map *map = nullptr;
    File file = handle && dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 ? File(map->l_name, O_RDONLY) : File();
    if (handle) dlclose(handle);
    return file;
}

} // namespace

bool load(SharedLibrary &library, Text &why) {
    const Lock lock;
    File file = open_file(library.path);
    library.identity = identity_of(file);
    if (!share(library)) {
        if (!check_file(library.path, why)) return false;
        const bool is_apart = file.is_open() && is_known(library.path);
        if (!(is_apart ? load_apart(library, std::move(file), why) : open_library(library, why))) return false;
    }
    library.next = loaded;
    loaded = &library;
    return true;
}

void unload(SharedLibrary &library) {
    const Lock lock;
    SharedLibrary **place = &loaded;
    while (*place != &library) place = &(*place)->next;
    *place = library.next;
    dlclose(library.handle);
}

} // namespace scalide

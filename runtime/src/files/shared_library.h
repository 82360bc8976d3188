#pragma once
#include "files/file.h"
#include "text.h"
#include <cstdint>
#include <sys/types.h>

namespace scalide {

/// The content of a file, without a look at it: another file and a changed file have another identity.
struct FileIdentity {
    dev_t device;
    ino_t inode;
    off_t bytes;
    int64_t changed_ns;
    bool is_settled; ///< the last change is so old that one more would have another time

    bool is_same_content(const FileIdentity &other) const {
        return is_settled && device == other.device && inode == other.inode && bytes == other.bytes && changed_ns == other.changed_ns;
    }
};

/// A shared library that the system's loader holds. The loader identifies a library by its path text and by its inode. If either is known,
/// it returns the old library, even if the file is new. Such a new file is loaded as `/proc/<process>/fd/<number>`, which debuggers can
/// open while the file is open.
struct SharedLibrary {
    const char *path; ///< as the caller wrote it; lives as long as the library
    void *handle = nullptr;
    File file = File();            ///< that the name `/proc/...` stands for; closed where the path is the name
    char name[64] = "";            ///< `/proc/...`
    FileIdentity identity = {};    ///< zeros, equal to no other, where the loader has searched for the file
    SharedLibrary *next = nullptr; ///< of all that are loaded

    const char *loaded_name() const { return *name ? name : path; }
};

/// Loads what is in the file `library.path` now. False: `why` gets the message behind the path.
bool load(SharedLibrary &library, Text &why);
void unload(SharedLibrary &library);

} // namespace scalide

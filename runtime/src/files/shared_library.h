#pragma once
#include "base/text.h"
#include "files/file.h"
#include <cstdint>
#include <sys/types.h>

namespace scalide {

/// Identifies the content of a file without reading it. Another file or a changed file has another identity.
struct FileIdentity {
    dev_t device;
    ino_t inode;
    off_t bytes;
    int64_t changed_ns;
    bool is_settled; ///< the last change is so old that another change would get another time

    bool is_same_content(const FileIdentity &other) const {
        return is_settled && device == other.device && inode == other.inode && bytes == other.bytes && changed_ns == other.changed_ns;
    }
};

/// A shared library that the system's loader holds. The loader identifies a library by its path text and by its inode. If either is known,
/// it returns the old library, even if the file is new. Such a new file is loaded as `/proc/<process>/fd/<number>`, which debuggers can
/// open while the file is open.
struct SharedLibrary {
    const char *path; ///< as the caller wrote it; must live as long as the library
    void *handle = nullptr;
    File file = File();            ///< the file behind the name `/proc/...`; closed if the path is the name
    char name[64] = "";            ///< `/proc/...`
    FileIdentity identity = {};    ///< all zeros, equal to no other identity, if the loader has searched for the file
    SharedLibrary *next = nullptr; ///< next of all loaded libraries

    const char *loaded_name() const { return *name ? name : path; }
};

/// Loads the present content of the file `library.path`. If this returns false, `why` gets the part of the message after the path.
bool load(SharedLibrary &library, Text &why);
void unload(SharedLibrary &library);

} // namespace scalide

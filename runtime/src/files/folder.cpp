#include "files/folder.h"
#include "files/new_file.h"
#include <cstdio>
#include <cstring>
#include <sys/stat.h>

namespace scalide {

FolderReader::FolderReader(const char *path) : folder_(opendir(path)) {}

FolderReader::~FolderReader() {
    if (folder_) closedir(folder_);
}

const char *FolderReader::next() {
    if (!folder_) return nullptr;
    for (;;) {
        errno = 0;
        const dirent *entry = readdir(folder_);
        if (!entry) {
            error_ = errno;
            return nullptr;
        }
        if (std::strcmp(entry->d_name, ".") != 0 && std::strcmp(entry->d_name, "..") != 0) return entry->d_name;
    }
}

bool remove_all(const char *path) {
    if (std::remove(path) == 0) return true;
    if (errno != ENOTEMPTY && errno != EEXIST) return false;
    FolderReader reader(path);
    for (const char *name = reader.next(); name; name = reader.next()) {
        const OwnedText file({path, "/", name});
        if (!file) {
            errno = ENOMEM;
            return false;
        }
        if (std::remove(file.get()) != 0) return false;
    }
    return std::remove(path) == 0;
}

} // namespace scalide

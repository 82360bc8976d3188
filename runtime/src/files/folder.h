#pragma once
#include <dirent.h>

namespace scalide {

/// Reads the names in a folder, without `.` and `..`.
class FolderReader {
public:
    explicit FolderReader(const char *path);
    FolderReader(const FolderReader &) = delete;
    FolderReader &operator=(const FolderReader &) = delete;
    ~FolderReader();

    /// False: errno has the error.
    bool is_open() const { return folder_ != nullptr; }
    /// Returns the next name, or NULL at the end and after an error. The name is valid until the next call.
    const char *next();
    /// The errno of an error of next(); 0: none.
    int error() const { return error_; }

private:
    DIR *folder_;
    int error_ = 0;
};

/// Removes a file, or a folder with the files in it. If this returns false, errno has the error.
bool remove_all(const char *path);

} // namespace scalide

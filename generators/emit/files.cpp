#include "emit/files.h"
#include "emit/process.h"
#include "expr/error.h"
#include <cerrno>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <fstream>
#include <sys/file.h>
#include <unistd.h>

namespace scalide {

namespace fs = std::filesystem;

namespace {

constexpr const char *part_prefix = ".scalide-part-";

[[noreturn]] void fail(const std::string &verb, const fs::path &file, const std::string &reason) {
    throw UserError(failed_action(verb + " " + file.string(), reason));
}

void make_folder(const fs::path &folder) {
    std::error_code error;
    fs::create_directories(folder, error);
    if (error) fail("create the folder", folder, error.message());
}

fs::path part_beside(const fs::path &file) { return file.string() + part_prefix + std::to_string(getpid()); }

/// A lock that one process holds at a time, if the file system supports locks.
class FolderLock {
public:
    explicit FolderLock(const fs::path &folder) : descriptor_(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
        if (descriptor_ >= 0) flock(descriptor_, LOCK_EX);
    }
    FolderLock(const FolderLock &) = delete;
    FolderLock &operator=(const FolderLock &) = delete;
    ~FolderLock() {
        if (descriptor_ >= 0) close(descriptor_);
    }

private:
    int descriptor_;
};

/// A file that is replaced, with a backup of the old file.
class Replacement {
public:
    Replacement(fs::path part, fs::path file, fs::path old) : part_(std::move(part)), file_(std::move(file)), old_(std::move(old)) {}

    void apply() {
        std::error_code ignored; // without hard links there is no backup
        was_there_ = fs::exists(file_, ignored);
        fs::create_hard_link(file_, old_, ignored);
        is_applied_ = true;
        move_file(part_, file_);
    }
    void undo() const {
        std::error_code ignored;
        if (!is_applied_) return;
        if (was_there_) {
            fs::rename(old_, file_, ignored);
        } else {
            fs::remove(file_, ignored);
        }
    }

private:
    fs::path part_, file_, old_;
    bool was_there_ = false, is_applied_ = false;
};

const WorkFolder *living_folder = nullptr;
pid_t owner = 0; ///< of the folder: a child process has a copy of this memory and must not remove it

/// Removes a folder that contains only files. fs::remove_all would throw through noexcept functions if memory runs out. A second attempt
/// may have memory again.
void remove_folder(const fs::path &folder) noexcept {
    for (int attempt = 0; attempt < 2; attempt++) {
        DIR *const entries = opendir(folder.c_str());
        if (entries == nullptr) continue;
        while (const dirent *entry = readdir(entries)) unlinkat(dirfd(entries), entry->d_name, 0); // the kernel refuses to unlink . and ..
        closedir(entries);
        if (rmdir(folder.c_str()) == 0) return;
    }
}

// Folder names end with the number of their process. If that process is gone, it was killed.
void remove_stale_folders(const fs::path &parent) {
    std::error_code error;
    for (const fs::directory_entry &entry : fs::directory_iterator(parent, error)) {
        const std::string name = entry.path().filename().string();
        if (!name.starts_with(part_prefix)) continue;
        if (!is_running(std::atoi(name.c_str() + std::strlen(part_prefix)))) remove_folder(entry.path());
    }
}

} // namespace

std::string read_file(const fs::path &file) {
    std::ifstream in(file, std::ios::binary);
    if (!in) fail("read", file, std::strerror(errno));
    std::string text, block(size_t(1) << 16, '\0');
    while (in.read(block.data(), static_cast<std::streamsize>(block.size())), in.gcount() > 0)
        text.append(block, 0, static_cast<size_t>(in.gcount()));
    if (in.bad()) fail("read", file, std::strerror(errno)); // `out << in.rdbuf()` would take this for the end
    return text;
}

void write_file(const fs::path &file, const std::string &text) {
    if (file.has_parent_path()) make_folder(file.parent_path());
    const PartFile part(part_beside(file));
    std::ofstream out(part.path, std::ios::binary);
    out << text;
    out.close();
    if (!out) fail("write", file, std::strerror(errno));
    move_file(part.path, file);
}

void move_file(const fs::path &from, const fs::path &to) {
    std::error_code error;
    if (fs::exists(to, error) && !fs::is_regular_file(to, error)) fail("write", to, "it is a folder or a device, not a regular file");
    fs::rename(from, to, error);
    if (error == std::errc::cross_device_link) {
        const PartFile part(part_beside(to)), moved(from);
        fs::copy_file(from, part.path, fs::copy_options::overwrite_existing, error);
        if (!error) fs::rename(part.path, to, error);
    }
    if (error) fail("write", to, error.message());
}

PartFile::~PartFile() {
    std::error_code ignored;
    fs::remove(path, ignored);
}

WorkFolder::WorkFolder(const fs::path &parent) : path_(parent / (part_prefix + std::to_string(getpid()))) {
    make_folder(parent);
    remove_stale_folders(parent);
    make_folder(path_);
    living_folder = this;
    owner = getpid();
}

WorkFolder::~WorkFolder() {
    remove_folder(path_);
    living_folder = nullptr;
}

void remove_work_folder() noexcept {
    if (living_folder != nullptr && getpid() == owner) remove_folder(living_folder->path());
}

void WorkFolder::publish(const std::vector<std::string> &names, const fs::path &folder) const {
    const FolderLock lock(folder);
    std::vector<Replacement> replaced;
    for (const std::string &name : names) replaced.emplace_back(path_ / name, folder / name, path_ / ("old." + name));
    try {
        for (Replacement &replacement : replaced) replacement.apply();
    } catch (...) {
        for (const Replacement &replacement : replaced) replacement.undo();
        throw;
    }
}

} // namespace scalide
